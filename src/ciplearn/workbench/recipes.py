"""`Recipe`: what is trained, as settings, as a command line and as a script."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ciplearn._core.errors import InputError
from ciplearn.cli.options import join_names
from ciplearn.sources.text_layout import separator_of
from ciplearn.workbench.document import Document
from ciplearn.workbench.schema import Schema, check

# Least epochs, least steps, and gammas beside 0.
PRESETS: dict[str, tuple[int, int, tuple[float, ...]]] = {
    "quick": (20, 300, (0.03, 0.1, 0.3, 1.0, 3.0)),
    "standard": (60, 1200, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)),
    "thorough": (200, 4000, (0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.7, 1.0, 3.0, 10.0)),
}
_BATCH = 256

# Routes of models that have no gamma, by the names of the estimators, which are not loaded for two words.
WITHOUT_GAMMA = ("line", "left-out")

ROUTES = ("independence", "counterfactual", "line", "cf1", "cf2")

# What the page says about a training, and what a run keeps of it.
RECIPE: Schema = {
    "type": "object",
    "properties": {
        "routes": {"type": "array", "items": {"type": "string", "enum": list(ROUTES)}, "minItems": 1, "maxItems": 5},
        "tolerance": {"type": "number", "minimum": 0, "maximum": 100},
        "preset": {"type": "string", "enum": list(PRESETS)},
        "anyway": {"type": "boolean"},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
    },
    "required": ("routes", "tolerance"),
}


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes
    ----------
    routes : tuple of str
    tolerance : float
        The share of what an unconstrained predictor explains that may be lost, as `Allowance` has it.
    preset : str
    anyway : bool
        Enforce a statement that the graph does not certify.
    seed : int
    """

    routes: tuple[str, ...]
    tolerance: float
    preset: str = "quick"
    anyway: bool = False
    seed: int = 0

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Self:
        """Read what the page asks for, or say what cannot be."""
        check(message, RECIPE, "the training")
        routes = message["routes"]
        if not {"independence", "counterfactual"} & set(routes):
            raise InputError("No route with stops was chosen; choose the independence or the counterfactual penalty.")
        given = {name: message[name] for name in ("preset", "anyway", "seed") if name in message}
        return cls(tuple(routes), float(message["tolerance"]), **given)

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON data, which `read` reads back."""
        return {**asdict(self), "routes": list(self.routes)}

    @property
    def gammas(self) -> tuple[float, ...]:
        """The stops of a route, the unconstrained one first."""
        return (0.0, *PRESETS[self.preset][2])

    def epochs(self, rows: int) -> int:
        """At least so many epochs and so many steps: a small table has few steps per epoch."""
        epochs, steps, _ = PRESETS[self.preset]
        return max(epochs, math.ceil(steps / math.ceil(rows / _BATCH)))


def command_line(document: Document, recipe: Recipe, gamma: float, epochs: int, table: str, folder: str) -> list[str]:
    """Return the words of ``ciplearn fit`` that train one stop of the independence route."""
    verdict = document.verdict()
    words = ["ciplearn", "fit", table, f"--graph={document.graph.to_dagitty()}", f"--outcome={verdict.outcome}"]
    # A role of no columns is named too: left out, it would be that of all.
    roles = ("protected", "context", "inputs", "adjustment")
    words += [f"--{role}={join_names(getattr(verdict, role))}" for role in roles]
    codes = [name for name, kind in document.kinds.items() if kind == "category" and name in document.graph.index]
    if codes:
        words.append(f"--categories={join_names(codes)}")
    if not verdict.holds:
        words.append("--on-violation=warn")
    return [*words, f"--gamma={gamma:g}", f"--epochs={epochs}", f"--seed={recipe.seed}", f"--out={folder}"]


def audit_line(recipe: Recipe, table: str) -> list[str]:
    """Return the words of ``ciplearn audit`` for the model that `command_line` has written."""
    return ["ciplearn", "audit", "model", table, f"--preset={recipe.preset}", "--out=report.html"]


def shown(words: list[str]) -> str:
    """Return words as a person types them into a shell."""
    return " ".join(shlex.quote(word) for word in words)


def script(document: Document, recipe: Recipe, stop: Mapping[str, Any], epochs: int, table: str, task: str) -> str:
    """Return a Python script that trains, saves and audits one stop with public names."""
    verdict = document.verdict()
    kind = "CIPClassifier" if task == "classification" else "CIPRegressor"
    labels = sorted(
        {name for name, chosen in document.kinds.items() if chosen == "category"} & set(document.graph.index)
    )
    by_model = stop["route"] == "counterfactual"
    roles = "".join(
        f"    {role}={list(getattr(verdict, role))!r},\n" for role in ("protected", "context", "inputs", "adjustment")
    )
    cells = "" if separator_of(Path(table)) == "," else f"sep={separator_of(Path(table))!r}, "
    text = f"pd.read_csv({table!r}, {cells}na_values='?')"
    read = f"pd.read_parquet({table!r})" if Path(table).suffix == ".parquet" else text
    columns = list(document.graph.observed)
    return f'''"""Train the stop that was kept on the workbench, save it and audit it."""

import pandas as pd

from ciplearn import CausalGraph, {kind}, audit, fit_scm, save_model

graph = CausalGraph.from_dagitty({document.graph.to_dagitty()!r})
columns = {columns!r}
table = {read}[columns].dropna()
{"".join(f"table[{name!r}] = table[{name!r}].astype(str)" + chr(10) for name in labels)}
# A fifth of the rows is kept for the audit.
rows = table.sample(frac=1, random_state={recipe.seed})
held, training = rows.iloc[: len(rows) // 5], rows.iloc[len(rows) // 5 :]
model = {kind}(
    graph=graph,
    outcome={verdict.outcome!r},
{roles}    gamma={stop["gamma"]!r},
{"    counterfactuals=fit_scm(graph, training, random_state=0)," + chr(10) if by_model else ""}\
    on_violation={"raise" if verdict.holds else "warn"!r},
    epochs={epochs},
    random_state={recipe.seed},
)
model.fit(training.drop(columns={verdict.outcome!r}), training[{verdict.outcome!r}])
save_model(model, "model")
# The model that judges is estimated on rows that training did not see.
print(audit(model, fit_scm(graph, held, random_state=1), held))
'''
