"""Routes to invariance side by side: what each costs, what it buys, and which one a goal takes.

Training sees some of the rows. The others judge: by the loss, and by what changes under a causal model that is
estimated on them alone, so that no candidate is judged by the model it was trained with.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from ciplearn._core.arguments import distinct, flag, is_number, non_negative, one_of, several, share
from ciplearn._core.errors import InputError, UnseenLevelsWarning
from ciplearn._core.plain_data import as_data
from ciplearn._core.rows import as_seed
from ciplearn._core.wording import as_list
from ciplearn._core.workers import on_one_thread
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import checked_criterion, judging_splits
from ciplearn.estimators.problem import Problem
from ciplearn.evaluation.conclusion import Floor
from ciplearn.routes.beside import Baselines, Unconstrained
from ciplearn.routes.counterfactual import CounterfactualRoute
from ciplearn.routes.goal import Goal, strict_end
from ciplearn.routes.independence import IndependenceRoute
from ciplearn.routes.judging import Measured
from ciplearn.routes.left_out import LeftOutRoute
from ciplearn.routes.line import LineRoute
from ciplearn.routes.repaired import RepairRoute
from ciplearn.routes.route import FREE, Route
from ciplearn.routes.run import Run
from ciplearn.routes.tolerance import Tolerance
from ciplearn.scm import EstimatedModel

GAMMAS = (0.03, 0.1, 0.17, 0.3, 0.55, 1.0, 1.7, 3.0, 10.0, 30.0, 100.0)
SHARES = (0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)

# Every route: one line adds another.
ROUTES: dict[str, type[Route]] = {
    kind.name: kind for kind in (IndependenceRoute, CounterfactualRoute, LineRoute, LeftOutRoute, RepairRoute)
}

# What the paper's tolerance chooses among: trained penalties, and what they have to be better than.
TRAINED_ROUTES = ("independence", "counterfactual", "line", "left-out")

# Columns of a comparison; between them stand those of its goal, numbers all.
_FIRST = ("name", "kind", "learner", "gamma", "share", "strength", "loss", "score", "vcf", "relative")
_LAST = ("strict", "allowed", "keeps", "shrinks", "rests_on")
_TEXTS, _FLAGS = ("name", "kind", "learner", "keeps", "rests_on"), ("strict", "allowed", "shrinks")

_FOLDS = 3  # with few rows every row judges in its turn; a causal model of fewer than a third of them says little


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was compared, and what was taken.

    Attributes
    ----------
    table : DataFrame
        One row per candidate: ``name``, ``kind``, ``learner``, ``gamma``, ``share`` or ``strength``, ``loss``,
        ``score``, the criterion, ``vcf``, ``relative``, ``allowed`` (whether the goal allows it), ``keeps`` (the same
        in words), ``shrinks`` (whether all differences between rows became smaller alike, so that nothing is gained)
        and ``rests_on``; ``effect`` and ``moved``, the largest effect and the share of rows moved, where limits were
        the goal.
    models : mapping from name to model
        As trained on the rows that do not judge, of several folds the last; with folds, the chosen model and the
        unconstrained one are trained on all rows.
    chosen, reason : str
        The name of the candidate to take, and why, in one sentence.
    notes : tuple of str
        Routes that could not be taken, and why; what the causal model misfits; what else to know.
    scm, judge : EstimatedModel or None
        The causal model of training rows, and what VCF was measured under.
    met : bool
        Whether what was taken keeps to the goal.
    free : str
        The name of the best predictor without a constraint.
    rows : int
    limit : float, optional
        How far a prediction may move, in the outcome's unit; an audit of what was taken asks for the same.

    Examples
    --------
    >>> import pandas as pd
    >>> from ciplearn.routes import Comparison
    >>> Comparison(pd.DataFrame({"name": ["line"]}), {"line": "a model"}, "line", "Taken: line.").model
    'a model'
    """

    table: pd.DataFrame
    models: dict[str, Any]
    chosen: str
    reason: str
    notes: tuple[str, ...] = ()
    scm: EstimatedModel | None = None
    judge: EstimatedModel | None = None
    met: bool = True
    free: str = FREE
    rows: int = 0
    limit: float | None = None

    @property
    def model(self) -> Any:
        """The chosen model."""
        return self.models[self.chosen]

    @property
    def floor(self) -> Floor | None:
        """How far two causal models of halves of the rows disagree, where limits were the goal.

        It is what the strict end of the chosen path moves by under the model of the other half.
        """
        if not {"effect_end", "moved_end"} <= set(self.table.columns):
            return None
        rows = self.table.set_index("name", drop=False)
        end = strict_end(rows, rows.loc[self.chosen, "learner"])
        if end is None or pd.isna(rows.loc[end, "moved_end"]):
            return None
        return Floor(float(rows.loc[end, "effect_end"]), float(rows.loc[end, "moved_end"]), self.rows)

    def __str__(self) -> str:
        shown = self.table.drop(columns=["kind", "gamma", "share", "strength"]).round(4).to_string(index=False)
        return "\n".join([shown, *self.notes, self.reason])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data, without the models."""
        told = {name: getattr(self, name) for name in ("chosen", "reason", "notes", "met", "free", "rows", "limit")}
        # An infinite strength has no place in JSON; ``strict`` says it.
        return {**told, "notes": list(self.notes), "candidates": as_data(self.table.replace({np.inf: np.nan}))}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; the models are gone. Anything else is a ValueError or the like."""
        _refuse_changed(said)
        table = pd.DataFrame(said["candidates"])
        more = {name: said[name] for name in ("met", "free", "rows", "limit") if name in said}
        return cls(table, {}, said["chosen"], said["reason"], tuple(said["notes"]), **more)


def _refuse_changed(said: Mapping[str, Any]) -> None:
    candidates, rows, limit = said["candidates"], said.get("rows", 0), said.get("limit")
    right = {
        "chosen": said["chosen"] in [one["name"] for one in candidates],
        "reason": isinstance(said["reason"], str) and isinstance(said.get("free", FREE), str),
        "notes": isinstance(said["notes"], list) and all(isinstance(note, str) for note in said["notes"]),
        "met": isinstance(said.get("met", True), bool),
        "rows": isinstance(rows, int) and is_number(rows) and rows >= 0,
        "limit": limit is None or (is_number(limit) and limit >= 0),
        "candidates": all(set(one) == set(candidates[0]) >= {*_FIRST, *_LAST} for one in candidates),
        "columns": all(_is_cell(name, value) for one in candidates for name, value in one.items()),
    }
    for name, holds in right.items():
        if not holds:
            raise ValueError(f"{name} was changed")


def _is_cell(name: str, value: Any) -> bool:
    if name in _FLAGS:
        return isinstance(value, bool)
    if value is None:
        return name not in ("name", "kind", "loss")
    return isinstance(value, str) if name in _TEXTS else is_number(value)


def compare_routes(
    estimator: CIPEstimator,
    X: Any,
    y: Any,
    tolerance: float | Goal = 0.10,
    scoring: str | None = None,
    *,
    routes: Iterable[str] = TRAINED_ROUTES,
    learners: Mapping[str, Any] | None = None,
    gammas: Sequence[float] = GAMMAS,
    shares: Sequence[float] = SHARES,
    baselines: bool = True,
    validation_fraction: float = 0.3,
    cv: int | None = None,
    random_state: Any = 0,
    verbose: Any = False,
) -> Comparison:
    """Train each route, judge all of them on other rows, and take the one that a goal asks for.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With a graph and its roles; gamma and counterfactuals are replaced.
    X, y
    tolerance : float or Goal
        The share of what the unconstrained predictor explains that may be lost, see `GammaSearch`; or a goal such as
        ``WithinLimits()``.
    scoring : "loss", "auc", "score" or "balanced_accuracy", optional
        What a tolerance is about.
    routes : iterable of str
        Of "independence", "counterfactual", "line", "left-out" (the protected columns are not looked at) and "repair"
        (each learner's model is changed as little as possible, in closed form).
    learners : mapping from name to Learner or None, optional
        For "left-out" and "repair"; None is the estimator's own network, which is the default.
    gammas, shares : sequence of float
        Of the penalties, and of the straight line.
    baselines : bool
        Also train CF1 and CF2 on parents.
    validation_fraction : float
        Share of the rows that judge, where they are split once.
    cv : int, optional
        Every row judges in its turn, and what is chosen is trained once more on all rows; by default 3 folds below
        4 000 rows, and one split above.
    random_state : int, Generator, RandomState or None
    verbose : bool or progress bar

    Examples
    --------
    >>> from ciplearn import CIPRegressor, compare_routes, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(200, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0)
    >>> X, y = table.drop(columns="Y"), table["Y"]
    >>> compare_routes(model, X, y, 0.9, routes=["line"], shares=(0.2,), baselines=False).table["name"].tolist()
    ['unconstrained', 'line, 20% of VCF kept']
    """
    named = tuple(one_of(route, "A route", ROUTES) for route in several(routes, "routes"))
    if not named:
        raise InputError(f"routes must be of {as_list(ROUTES)}, got none; name some of these.")
    gammas = distinct([non_negative(gamma, "gamma") for gamma in several(gammas, "gammas")], "gammas")
    shares = distinct([share(each, "Each of shares") for each in several(shares, "shares")], "shares")
    flag(baselines, "baselines")
    if not isinstance(estimator, CIPEstimator) or estimator.graph is None:
        raise InputError("Routes are compared for a CIPRegressor or CIPClassifier with a graph; pass one with graph=.")
    problem = Problem.of_estimator(estimator, X, y)
    goal = tolerance
    if not isinstance(goal, Goal):
        criterion = checked_criterion(scoring, classifier=problem.is_classification)
        goal = Tolerance(non_negative(tolerance, "tolerance"), criterion)
    seed = as_seed(random_state)
    labels = problem.y if problem.is_classification else None
    splits = judging_splits(problem.X, problem.y, validation_fraction, seed, labels, cv, _FOLDS)
    made = [ROUTES[name].at(gammas, shares) for name in named]
    if idle := [route.name for route in made if not route.trainings(1)]:
        raise InputError(f"The {idle[0]} route has nothing to try; pass at least one of gammas and one of shares.")
    made += [Baselines()] if baselines else []
    return compared(problem, estimator, learners or {"network": None}, made, goal, splits, seed=seed, verbose=verbose)


@on_one_thread
def compared(
    problem: Problem,
    network: CIPEstimator,
    learners: Mapping[str, Any],
    routes: Sequence[Route],
    goal: Goal,
    splits: Sequence[tuple[Any, Any]],
    *,
    audited: int | None = None,
    seed: int = 0,
    verbose: Any = False,
) -> Comparison:
    """Follow routes on each split, measure every candidate alike, and let a goal pick.

    ``network``: not yet fitted. ``splits``: positions of rows to train on, and of rows that judge; two halves that
    judge each other share their causal models. ``audited``: how many rows an audit will have; a quarter of the table
    by default.
    """
    run = Run(problem, network, learners, [Unconstrained(), *routes], goal, seed, verbose, len(splits))
    # A level that only the rows that judge show is nothing to tell: it is in the table.
    with warnings.catch_warnings(action="ignore", category=UnseenLevelsWarning):
        parts = [run.on(train, judge) for train, judge in splits]
    names = [name for name in parts[-1] if all(name in part for part in parts)]
    field = run.field({name: Measured.joined([part[name] for part in parts]) for name in names}, audited)
    choice = goal.pick(field)
    models = {name: run.candidates[name].model for name in names}
    if len(splits) > 1:
        whole = run.part(np.arange(len(problem.table)))
        # A line costs nothing once its ends are trained.
        again = {field.free, choice.name} | {name for name in names if run.candidates[name].share is not None}
        models |= {name: run.candidates[name].make(whole) for name in again}
    middle = [name for name in field.table.columns if name not in (*_FIRST, *_LAST)]
    table = field.table[[*_FIRST, *middle, *_LAST]].reset_index(drop=True)
    notes = (*run.refusals(), *run.notes, *choice.notes)
    about: dict[str, Any] = {"met": choice.met, "free": field.free, "rows": len(problem.table), "limit": run.limit}
    return Comparison(table, models, choice.name, choice.reason, notes, *run.causal_models(), **about)
