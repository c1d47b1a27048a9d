"""`Recipe`: what is asked of a training, as words of the command line and as a script."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ciplearn._core.errors import InputError
from ciplearn.cli.options import join_names
from ciplearn.sources.formats import separator_of
from ciplearn.workbench.document import Document
from ciplearn.workbench.protocol import GOALS, LEARNERS, RECIPE, check

_ROLES = ("protected", "context", "inputs", "adjustment")
_DOUBT = {"quick": 0, "standard": 20, "thorough": 200}  # how many other graphs are asked about


@dataclass(frozen=True)
class Recipe:
    """What is asked, as ``ciplearn fit`` asks it."""

    goal: str = "limits"  # a key of `GOALS`
    amount: float | None = None  # of an effect, of VCF or of what may be lost
    learner: str = "auto"
    preset: str = "quick"
    anyway: bool = False  # whether to enforce a statement that the graph does not certify, too
    seed: int = 0

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> Self:
        """Read what the page asks for, or say what cannot be."""
        check(message, RECIPE, "the training")
        recipe = cls(**{name: message[name] for name in RECIPE["properties"] if name in message})
        if recipe.amount is None and GOALS[recipe.goal][2]:
            raise InputError(f"The goal {recipe.goal!r} needs an amount; say how much.")
        return recipe

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON data, which `read` reads back."""
        return asdict(self)

    @property
    def goal_words(self) -> list[str]:
        """The goal as an option; the usual limits need none."""
        option, _, needs_amount = GOALS[self.goal]
        if self.amount is not None and (needs_amount or self.goal == "limits"):
            return [f"{option}={self.amount:g}"]
        return [] if self.goal == "limits" else [option]


def fit_line(document: Document, recipe: Recipe, table: str) -> list[str]:
    """Return the words of ``ciplearn fit`` that train."""
    verdict = document.verdict()
    words = ["ciplearn", "fit", table, f"--graph={document.graph.to_dagitty()}", f"--outcome={verdict.outcome}"]
    # A role of no columns is named too: left out, it would be that of all.
    words += [f"--{role}={join_names(getattr(verdict, role))}" for role in _ROLES]
    if document.labels:
        words.append(f"--categories={join_names(document.labels)}")
    if recipe.anyway and not verdict.holds:
        words.append("--on-violation=warn")
    learner = [] if recipe.learner == "auto" or recipe.goal == "tolerance" else [f"--learner={recipe.learner}"]
    return [*words, *recipe.goal_words, *learner, f"--preset={recipe.preset}", f"--seed={recipe.seed}", "--out=model"]


def audit_line(recipe: Recipe, table: str, strength: str | None = None) -> list[str]:
    """Return the words of ``ciplearn audit`` for the model that `fit_line` has written, at another strength perhaps."""
    limit = recipe.goal_words if recipe.goal == "limits" else []
    turned = [] if strength is None else [f"--strength={strength}"]
    # All presets ask about the same worlds, so that the figures are those of the training's own audit.
    doubt = f"--doubt={_DOUBT[recipe.preset]}"
    return ["ciplearn", "audit", "model", table, *limit, *turned, doubt, "--out=report.html"]


def shown(words: list[str]) -> str:
    """Return words as a person types them into a shell."""
    return " ".join(shlex.quote(word) for word in words)


def script(document: Document, recipe: Recipe, stop: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return a Python script that trains, saves and audits one stop with public names."""
    verdict, table = document.verdict(), run["table"]["name"]
    kind = "CIPClassifier" if run["task"] == "classification" else "CIPRegressor"
    roles = "".join(f"    {role}={list(getattr(verdict, role))!r},\n" for role in _ROLES)
    cells = "" if separator_of(Path(table)) == "," else f"sep={separator_of(Path(table))!r}, "
    text = f"pd.read_csv({table!r}, {cells}na_values='?')"
    read = f"pd.read_parquet({table!r})" if Path(table).suffix == ".parquet" else text
    goal = GOALS[recipe.goal][1].format(amount="" if recipe.amount is None else f"{recipe.amount:g}")
    compared = ""
    if recipe.goal != "tolerance":
        names = LEARNERS[1:] if recipe.learner == "auto" else (recipe.learner,)
        learners = ", ".join(f"{name!r}: {'None' if name == 'network' else f'LEARNERS[{name!r}]()'}" for name in names)
        compared = f"routes=['repair', 'left-out'], learners={{{learners}}}, baselines=False, cv=2, "
    taken = f"found.models[{stop['name']!r}]"
    if stop["strength"] is not None and stop["model"] == "model":
        taken = f"found.model.at(float({stop['strength']!r}))"
    return f'''"""Train the stop that was kept on the workbench, save it and audit it."""

import pandas as pd

from ciplearn import CausalGraph, {kind}, audit, compare_routes, fit_scm, save_model
from ciplearn.evaluation import Limits
from ciplearn.learners import LEARNERS
from ciplearn.routes import ShareOfVCF, Strict, WithinLimits

graph = CausalGraph.from_dagitty({document.graph.to_dagitty()!r})
columns = {list(document.graph.observed)!r}
table = {read}[columns].dropna()
{"".join(f"table[{name!r}] = table[{name!r}].astype(str)" + chr(10) for name in document.labels)}
# A fifth of the rows is kept for the audit.
rows = table.sample(frac=1, random_state={recipe.seed})
held, training = rows.iloc[: len(rows) // 5], rows.iloc[len(rows) // 5 :]
network = {kind}(
    graph=graph,
    outcome={verdict.outcome!r},
{roles}    on_violation={"warn" if recipe.anyway else "raise"!r},
    epochs={run["epochs"]},
    early_stopping=True,
    random_state={recipe.seed},
)
X, y = training.drop(columns={verdict.outcome!r}), training[{verdict.outcome!r}]
found = compare_routes(network, X, y, {goal}, {compared}random_state={recipe.seed})
print(found)
model = {taken}
save_model(model, "model")
# The model that judges is estimated on rows that training did not see.
print(audit(model, fit_scm(graph, held, random_state=1), held))
'''
