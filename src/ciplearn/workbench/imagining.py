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
from ciplearn.evaluation import variance_of_counterfactuals
from ciplearn.evaluation.counterfactual_rows import as_known_beforehand
from ciplearn.saving import load_model
from ciplearn.scm import StructuralCausalModel, fit_scm
from ciplearn.workbench.document import Document
from ciplearn.workbench.measures import Array, answers
from ciplearn.workbench.recipes import Recipe
from ciplearn.workbench.tables import Table
from ciplearn.workbench.walked_rows import WalkedRows

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
    # kept, free: the model of a stop and the one without a penalty; free is None where there is none
    kept: Any
    free: Any | None
    protected: tuple[str, ...]
    classes: list[Any] | None

    @classmethod
    def of(cls, run: Mapping[str, Any], kept: Path, free: Path | None) -> Imagination:
        """Load what a run has left and estimate the causal model anew: models are stored as numbers, never as code."""
        document, recipe = Document.read(run["document"]), Recipe.read(run["recipe"])
        verdict = document.verdict()
        table = Table(Path(run["table"]["path"]), run["table"]["name"])
        judging = WalkedRows.of(table, document, recipe.seed).judging
        model = load_model(kept)
        scm = fit_scm(document.graph, judging, random_state=recipe.seed + 1)
        return cls(
            as_known_beforehand(scm, judging, verdict.outcome),
            judging[verdict.outcome],
            scm,
            model,
            None if free is None else load_model(free),
            verdict.protected,
            list(model.classes_) if hasattr(model, "classes_") else None,
        )

    # ---------------------------------------------------------------- which row

    def choices(self) -> dict[str, Any]:
        """Return rows to pick from, the most affected first, and what the protected nodes can be."""
        judged = self.free if self.free is not None else self.kept
        found = variance_of_counterfactuals(
            judged, self.scm, self.rows, list(self.protected), 300, 40, 0, inputs=self._inputs, n_draws=5
        ).per_row
        top = found.sort_values("vcf", ascending=False, kind="stable").head(_SHOWN_ROWS)
        return {
            "columns": [str(name) for name in self.rows.columns],
            "rows": [
                {"row": str(index), "vcf": float(top.loc[index, "vcf"]), "values": self._values(self.rows.loc[[index]])}
                for index in top.index
            ],
            "protected": [self._range(name) for name in self.protected],
            "output": self.output,
        }

    @property
    def _inputs(self) -> list[str]:
        return [str(name) for name in self.rows.columns if name != self.outcomes.name]

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
            "observed": self._values(observed),
            "imagined": self._averaged(imagined),
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
        def number(model: Any) -> float:
            return float(answers(model, frame)[:, -1].mean())

        return {"kept": number(self.kept), "free": None if self.free is None else number(self.free)}

    def _curve(self, observed: pd.DataFrame, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """What both models would have said along the first protected node, the others as they are set."""
        name = self.protected[0]
        described = self._range(name)
        levels: Array | list[Any]
        if described["kind"] == "category":
            levels = list(self.rows[name].cat.categories)
        else:
            levels = np.linspace(described["low"], described["high"], _CURVE)
        points = []
        for level in levels:
            said = self._said(self._had(observed, {**wanted, name: level}))
            points.append({"at": _plain(level), **said})
        return {"name": name, "kind": described["kind"], "points": points}

    def _values(self, frame: pd.DataFrame) -> dict[str, Any]:
        return {str(name): _plain(frame[name].iloc[0]) for name in frame.columns}

    def _averaged(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the mean of numbers and the shares of labels over the draws."""
        found: dict[str, Any] = {}
        for name in frame.columns:
            column = frame[name]
            if holds_numbers(column):
                found[str(name)] = float(column.mean())
            else:
                shares = column.astype(str).value_counts(normalize=True).head(3)
                told = [f"{label} {share:.0%}" if share < 1 else label for label, share in shares.items()]
                found[str(name)] = ", ".join(told)
        return found


def _differs(imagined: pd.Series, observed: Any) -> bool:
    """Tell whether some draw is not what was observed, beyond rounding."""
    if holds_numbers(imagined):
        return not np.allclose(imagined.to_numpy(dtype=float), float(observed))
    return bool((imagined.astype(str) != str(observed)).any())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, int | float | bool) else str(value)
