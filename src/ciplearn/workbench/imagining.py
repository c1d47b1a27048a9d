"""`Imagination`: one row, other values of the protected nodes, and what two models would have said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.rows import as_generator
from ciplearn.cli.audited import Effort
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.evaluation.counterfactual_rows import as_known_beforehand, sample_with_every_label
from ciplearn.scm import StructuralCausalModel, fit_scm
from ciplearn.workbench.document import Document
from ciplearn.workbench.recipes import Recipe
from ciplearn.workbench.stops import load_stop, subject_of
from ciplearn.workbench.tables import Table

# Rows to choose from, the most affected first.
_SHOWN_ROWS = 40

# Draws of what a row leaves open; values along a curve.
_DRAWS, _CURVE = 30, 25


@dataclass(frozen=True, eq=False)
class Imagination:
    """Rows that judge, a causal model of them, and two predictors."""

    rows: pd.DataFrame  # without the outcome, unless it acts on another column
    outcomes: pd.Series
    scm: StructuralCausalModel
    # kept, free: the model of a stop and the one without a constraint; free is None where there is none
    kept: Any
    free: Any | None
    protected: tuple[str, ...]
    classes: list[Any] | None

    @classmethod
    def of(cls, run: Mapping[str, Any], folder: Path, stop: Mapping[str, Any]) -> Imagination:
        """Load what a run has left; the causal model of the rows that judge is that of the audit."""
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        table = Table(Path(run["table"]["read"]), run["table"]["name"])
        subject = subject_of(folder / (run["models"] or "model"), table, document)
        outcome = subject.verdict.outcome
        labels = [name for name in subject.rows.columns if not holds_numbers(subject.rows[name])]
        rows = subject.rows.astype(dict.fromkeys(labels, "category"))
        some = sample_with_every_label(rows, Effort.of(recipe.preset).scm_rows, as_generator(recipe.seed))
        scm = fit_scm(subject.verdict.graph, some, random_state=recipe.seed)
        model = load_stop(folder, stop)
        free = next((one for one in run["stops"] if one["key"] == run.get("free") and one["model"]), None)
        return cls(
            as_known_beforehand(scm, rows, outcome),
            rows[outcome],
            scm,
            model,
            None if free is None else load_stop(folder, free),
            subject.verdict.protected,
            list(model.classes_) if hasattr(model, "classes_") else None,
        )

    # ---------------------------------------------------------------- which row

    def choices(self) -> dict[str, Any]:
        """Return rows to pick from, the most affected first, and what the protected nodes can be."""
        judged = self.free if self.free is not None else self.kept
        inputs = [str(name) for name in self.rows.columns if name != self.outcomes.name]
        found = variance_of_counterfactuals(
            judged, self.scm, self.rows, list(self.protected), 300, 40, 0, inputs=inputs, n_draws=5
        ).per_row
        top = found.sort_values("vcf", ascending=False, kind="stable").head(_SHOWN_ROWS)
        return {
            "columns": [str(name) for name in self.rows.columns],
            "rows": [
                {"row": str(index), "vcf": float(top.loc[index, "vcf"]), "values": _values(self.rows.loc[[index]])}
                for index in top.index
            ],
            "protected": [self._range(name) for name in self.protected],
            "output": self.output,
        }

    @property
    def output(self) -> str:
        """What the numbers of an answer are."""
        return "prediction" if self.classes is None else f"probability of {self.classes[-1]}"

    def _range(self, name: str) -> dict[str, Any]:
        column = self.rows[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            return {"name": name, "kind": "category", "levels": [str(level) for level in column.cat.categories]}
        return {"name": name, "kind": "number", "low": float(column.min()), "high": float(column.max())}

    # ---------------------------------------------------------------- had it been otherwise

    def imagine(self, row: Any, values: Any) -> dict[str, Any]:
        """Say what the row would have been with other protected values, and what both models would have said."""
        places = [place for place, index in enumerate(self.rows.index) if str(index) == str(row)]
        if not places:
            raise InputError(f"There is no row {str(row)[:40]!r} among those that judge; pick one of the list.")
        observed = self.rows.iloc[[places[0]]]
        wanted = self._checked(values)
        imagined = self._had(observed, wanted)
        return {
            "observed": _values(observed),
            "imagined": {str(name): _average(imagined[name]) for name in imagined.columns},
            "moved": [str(name) for name in imagined.columns if _differs(imagined[name], observed[name].iloc[0])],
            "outcome": _plain(self.outcomes.iloc[places[0]]),
            "protected": list(self.protected),
            "before": self._said(observed),
            "after": self._said(imagined),
            "curve": self._curve(observed, wanted),
            "output": self.output,
        }

    def _checked(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, Mapping) or set(values) != set(self.protected):
            raise InputError(f"Values must be given for {', '.join(self.protected)}, got {values!r}; move the sliders.")
        checked: dict[str, Any] = {}
        for name, value in values.items():
            column = self.rows[name]
            if isinstance(column.dtype, pd.CategoricalDtype):
                level = next((level for level in column.cat.categories if str(level) == str(value)), None)
                if level is None:
                    raise InputError(f"{name} is never {str(value)[:40]!r} in the table; pick one of its values.")
                checked[name] = level
            elif isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise InputError(f"{name} must be a number, got {str(value)[:40]!r}; move the slider.")
            else:
                checked[name] = float(value)
        return checked

    def _had(self, observed: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
        found = self.scm.counterfactual(observed, wanted, n_draws=_DRAWS, random_state=0)
        return found[[name for name in self.rows.columns if name in found.columns]]

    def _said(self, frame: pd.DataFrame) -> dict[str, float | None]:
        models = {"kept": self.kept, "free": self.free}
        return {name: None if one is None else _answer(one, frame) for name, one in models.items()}

    def _curve(self, observed: pd.DataFrame, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What both models would have said along the first protected node, the others as they are set."""
        name = self.protected[0]
        described = self._range(name)
        if described["kind"] == "category":
            levels = list(self.rows[name].cat.categories)
        else:
            levels = np.linspace(described["low"], described["high"], _CURVE).tolist()
        said = [self._said(self._had(observed, {**wanted, name: level})) for level in levels]
        points = [{"at": _plain(level), **both} for level, both in zip(levels, said, strict=True)]
        return {"name": name, "kind": described["kind"], "points": points}


def _values(row: pd.DataFrame) -> dict[str, Any]:
    return {str(name): _plain(row[name].iloc[0]) for name in row.columns}


def _average(column: pd.Series) -> float | str:
    """The mean of numbers over the draws, or the shares of labels."""
    if holds_numbers(column):
        return float(column.mean())
    shares = column.astype(str).value_counts(normalize=True).head(3)
    return ", ".join(f"{label} {share:.0%}" if share < 1 else str(label) for label, share in shares.items())


def _differs(imagined: pd.Series, observed: Any) -> bool:
    """Tell whether some draw is not what was observed, beyond rounding."""
    if holds_numbers(imagined):
        return not np.allclose(imagined.to_numpy(dtype=float), float(observed))
    return bool((imagined.astype(str) != str(observed)).any())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, int | float | bool) else str(value)


def _answer(model: Any, rows: pd.DataFrame) -> float:
    """A predictor's mean answer: of labels the probability of the last one."""
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    answers = np.asarray(ask(rows), dtype=float)
    return float(answers.reshape(len(rows), -1)[:, -1].mean())
