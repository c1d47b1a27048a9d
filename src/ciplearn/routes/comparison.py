"""Routes to invariance side by side: what each costs, what it buys, and what it rests on.

Training sees some of the rows. The others judge: by the loss, and by the variance of counterfactuals under a causal
model that is estimated on them alone, so that no route is judged by the model it was trained with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from tqdm import tqdm

from ciplearn._core.choices import distinct, one_of, several
from ciplearn._core.errors import InputError
from ciplearn._core.flags import flag
from ciplearn._core.numbers import non_negative, share
from ciplearn._core.random import as_seed
from ciplearn._core.wording import as_list
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Allowance, Judged, checked_criterion, rows_of
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LEFT_OUT, LINE
from ciplearn.estimators.splits import judging_splits
from ciplearn.routes.candidates import BASELINE, FREE, NO_JUDGE, ROUTES, Asked, Candidates, OnOtherRows
from ciplearn.scm import EstimatedModel

GAMMAS = (0.03, 0.1, 0.17, 0.3, 0.55, 1.0, 1.7, 3.0, 10.0, 30.0, 100.0)
SHARES = (0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)

# With few rows every row judges in its turn; a causal model of fewer than a third of them says little.
_FOLDS = 3

# A route that rests on more has to be better by more than this share of VCF.
_CLEARLY = 0.9

# Below this share of the unconstrained predictor's VCF, less is not worth a loss.
_NEXT_TO_NOTHING = 0.01

# Which kind is taken where nobody can say how far predictions vary: what rests on the graph alone comes first.
_WITHOUT_A_JUDGE = (LINE, INDEPENDENCE, LEFT_OUT, COUNTERFACTUAL)

# From this share of the unconstrained predictor's relative VCF on, a route has only made all differences smaller.
_ONLY_SHRINKS = 0.95

_NOTHING_TO_LOSE = (
    "Even without any penalty the predictor is no better than a constant, so there is nothing to keep; add inputs that "
    "tell the outcome, or rows."
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare_routes` found.

    Attributes
    ----------
    table : DataFrame
        One row per candidate: ``name``, ``kind``, ``gamma`` or ``share``, ``loss``, ``score``, the criterion, ``vcf``,
        ``relative``, ``allowed`` (whether the tolerance allows it), ``shrinks`` (whether all differences between rows
        became smaller alike, so that nothing is gained) and ``rests_on``.
    models : mapping from name to model
        As trained on the rows that do not judge, of several folds the last; with folds, the chosen model, the
        unconstrained one and the line are trained on all rows.
    chosen : str
        The name of the route to take.
    reason : str
        Why, in one sentence.
    notes : tuple of str
        Routes that could not be taken, and why; what the causal model misfits; baselines that do better in both.
    scm : EstimatedModel or None
        What the counterfactual route was trained with.
    judge : EstimatedModel or None
        What VCF was measured under.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> from ciplearn.routes import compare_routes
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(200, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0)
    >>> found = compare_routes(model, table.drop(columns="Y"), table["Y"], gammas=(1,), shares=(0.2,), baselines=False)
    >>> found.chosen in found.models
    True
    """

    table: pd.DataFrame
    models: dict[str, Any]
    chosen: str
    reason: str
    notes: tuple[str, ...] = ()
    scm: EstimatedModel | None = None
    judge: EstimatedModel | None = None

    @property
    def model(self) -> Any:
        """The chosen model."""
        return self.models[self.chosen]

    def __str__(self) -> str:
        shown = self.table.drop(columns=["kind", "gamma", "share"]).round(4).to_string(index=False)
        return "\n".join([shown, *self.notes, self.reason])


def compare_routes(
    estimator: CIPEstimator,
    X: Any,
    y: Any,
    tolerance: float = 0.10,
    measure: str | None = None,
    *,
    routes: Iterable[str] = ROUTES,
    gammas: Sequence[float] = GAMMAS,
    shares: Sequence[float] = SHARES,
    baselines: bool = True,
    validation_fraction: float = 0.3,
    folds: int | None = None,
    random_state: Any = 0,
    verbose: Any = False,
) -> Comparison:
    """Train each route, judge all of them on other rows, and recommend one within a tolerance.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With a graph and its roles; gamma and counterfactuals are replaced.
    X, y
        The rows, as `fit` of the estimator takes them.
    tolerance : float
        The share of what the unconstrained predictor explains that may be lost, see `GammaSearch`.
    measure : "loss", "auc", "score" or "balanced_accuracy", optional
        What the tolerance is about.
    routes : iterable of str
        Of "independence", "counterfactual", "line" and "left-out" (the protected columns are not looked at).
    gammas, shares : sequence of float
        Of the penalties, and of the straight line.
    baselines : bool
        Also train CF1 and CF2 on parents.
    validation_fraction : float
        Share of the rows that judge, where they are split once.
    folds : int, optional
        Every row judges in its turn, and what is chosen is trained once more on all rows; by default 3 folds below
        4 000 rows, and one split above.
    random_state : int, Generator, RandomState or None
    verbose : bool or progress bar

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> from ciplearn.routes import compare_routes
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(200, random_state=0)
    >>> model = CIPRegressor(graph=world.graph, outcome="Y", protected=["A"], epochs=3, random_state=0)
    >>> found = compare_routes(
    ...     model, table.drop(columns="Y"), table["Y"], tolerance=0.9, gammas=(1,), shares=(0.2,), baselines=False
    ... )
    >>> {"unconstrained", "independence, gamma 1", "line, 20% of VCF kept"} <= set(found.table["name"])
    True
    """
    routes = tuple(one_of(route, "A route", ROUTES) for route in several(routes, "routes"))
    if not routes:
        raise InputError(f"routes must be of {as_list(ROUTES)}, got none; name some of these.")
    gammas = distinct([non_negative(gamma, "gamma") for gamma in several(gammas, "gammas")], "gammas")
    flag(baselines, "baselines")
    shares = distinct([share(each, "Each of shares") for each in several(shares, "shares")], "shares")
    if not isinstance(estimator, CIPEstimator) or estimator.graph is None:
        raise InputError("Routes are compared for a CIPRegressor or CIPClassifier with a graph; pass one with graph=.")
    criterion = checked_criterion(measure, classifier=is_classifier(estimator))
    seed = as_seed(random_state)
    labels = y if is_classifier(estimator) else None
    splits = judging_splits(X, y, validation_fraction, seed, labels, folds, _FOLDS)
    planned = len(splits) * _trainings(routes, gammas, shares, baselines)
    bar = _bar(verbose, planned)
    tolerance = non_negative(tolerance, "tolerance")
    asked = Asked(estimator, routes, gammas, shares, baselines, criterion, tolerance, seed, bar)
    parts: list[OnOtherRows] = []
    refused: dict[str, str] = {}
    for train, judge in splits:
        candidates = Candidates(asked, rows_of(X, y, train), rows_of(X, y, judge))
        parts.append(candidates.judged())
        refused = candidates.refused | refused
    judged = [part for part in parts if part.judge is not None]
    if judged and len(judged) < len(parts):
        refused[NO_JUDGE] = f"In {len(parts) - len(judged)} of {len(parts)} folds: {refused[NO_JUDGE]}"
    joined = _joined(candidates, parts)
    routes_left = {candidates.about[name]["kind"] for name in joined} & set(ROUTES)
    allowance = Allowance(criterion, tolerance, joined[FREE], max(1, len(routes_left)))
    table = _with_shrinking(_judged_table(candidates, judged or parts, joined, allowance))
    chosen, reason = _recommendation(table, tolerance) if allowance.explains_something else (FREE, _NOTHING_TO_LOSE)
    models = {name: candidates.models[name] for name in table["name"]}
    if len(splits) > 1:
        models |= candidates.on_all_rows(chosen, X, y)
    notes = (
        *refused.values(),
        *candidates.notes,
        *_better_baselines(table, chosen),
        *_just_beyond(table, chosen, allowance, joined),
    )
    return Comparison(table, models, chosen, reason, notes, candidates.scm, (judged or parts)[-1].judge)


def _trainings(routes: Iterable[str], gammas: Sequence[float], shares: Sequence[float], baselines: bool) -> int:
    """How many candidates there are at most, on one part of the rows."""
    at_gammas = 2 * (INDEPENDENCE in routes) + (COUNTERFACTUAL in routes)
    return 1 + len(gammas) * at_gammas + len(shares) * (LINE in routes) + (LEFT_OUT in routes) + 2 * baselines


def _joined(final: Candidates, parts: Sequence[OnOtherRows]) -> dict[str, Judged]:
    """What each candidate that was trained on every part of the rows said of the others."""
    names = [name for name in final.models if all(name in part.answers for part in parts)]
    return {name: reduce(Judged.joined, (part.answers[name] for part in parts)) for name in names}


def _judged_table(
    final: Candidates, parts: Sequence[OnOtherRows], joined: dict[str, Judged], allowance: Allowance
) -> pd.DataFrame:
    """One row per candidate."""
    rows = []
    for name, answers in joined.items():
        spread = np.array([part.vcf[name] for part in parts])
        row = {**final.about[name], "settings": None, "vcf": spread[:, 0].mean(), "relative": spread[:, 1].mean()}
        measures = dict.fromkeys(("loss", "score", allowance.criterion))
        row |= {measure: CRITERIA[measure](answers) for measure in measures}
        row["allowed"] = row["kind"] == FREE or (allowance.explains_something and allowance.allows(answers))
        rows.append(row)
    columns = ["name", "kind", "gamma", "share", "loss", "score", "vcf", "relative", "allowed", "rests_on"]
    table = pd.DataFrame(rows).drop(columns="settings")
    ordered = [*columns, *(name for name in table.columns if name not in columns)]
    return table.reindex(columns=ordered)


def _with_shrinking(table: pd.DataFrame) -> pd.DataFrame:
    """Mark candidates whose VCF fell only because all their predictions moved together."""
    free = table.loc[table["kind"] == FREE, ["vcf", "relative"]].iloc[0]
    alike = (table["vcf"] < free["vcf"]) & (table["relative"] >= _ONLY_SHRINKS * free["relative"])
    return table.assign(shrinks=alike & (table["kind"] != FREE))


def _recommendation(table: pd.DataFrame, tolerance: float) -> tuple[str, str]:
    """The allowed route of least VCF, of several with next to none the most accurate.

    A route that rests on an estimated model has to be clearly better than those that rest on the graph alone.
    """
    free = table[table["kind"] == FREE].iloc[0]
    allowed = table[table["allowed"] & table["kind"].isin(ROUTES)]
    shrunk = allowed[allowed["shrinks"]]
    allowed = allowed[~allowed["shrinks"]]
    if allowed.empty and len(shrunk):
        return FREE, (
            f"Within a tolerance of {tolerance:.0%} routes only shrink all predictions alike "
            f"({shrunk.sort_values('vcf').iloc[0]['name']}): they follow the protected variables as much as before. "
            "Raise the tolerance."
        )
    if allowed.empty:
        return FREE, (
            f"No route loses at most {tolerance:.0%} of what is explained; raise the tolerance, or choose a smaller "
            f"context."
        )
    if allowed["vcf"].isna().all():
        order = allowed.assign(place=allowed["kind"].map(_WITHOUT_A_JUDGE.index))
        # Of one kind the strictest: what keeps the smallest share, or is penalised most.
        first = order.sort_values(["place", "share", "gamma"], ascending=[True, True, False]).iloc[0]
        return first["name"], (
            f"Taken: {first['name']}, the strictest of its kind within the tolerance; no causal model could judge VCF. "
            f"It rests on {first['rests_on']}."
        )
    known = allowed.assign(left=np.maximum(allowed["vcf"], _NEXT_TO_NOTHING * free["vcf"]))
    order = known.sort_values(["left", "loss"])
    best = order.iloc[0]
    safe = order[order["kind"] != COUNTERFACTUAL]
    if best["kind"] == COUNTERFACTUAL and len(safe) and best["left"] > _CLEARLY * safe.iloc[0]["left"]:
        best = safe.iloc[0]
    left = best["vcf"] / free["vcf"] if free["vcf"] > 0 else 0.0
    return best["name"], (
        f"Taken: {best['name']}. Of the routes that lose at most {tolerance:.0%} of what is explained it varies least "
        f"with the protected variables: {_percent(left)} of the unconstrained predictor's VCF is left (loss "
        f"{best['loss']:.4g} against {free['loss']:.4g}). It rests on {best['rests_on']}."
    )


def _better_baselines(table: pd.DataFrame, chosen: str) -> list[str]:
    """Baselines that vary less than what was taken and are more accurate, or accurate enough: people should know."""
    taken = table[table["name"] == chosen].iloc[0]
    rows = table[(table["kind"] == BASELINE) & (table["vcf"] < taken["vcf"])]
    return [
        f"{row['name']} {'does better in both' if row['loss'] < taken['loss'] else 'varies less, at a larger loss'}: "
        f"loss {row['loss']:.4g} and VCF {row['vcf']:.3g}, against {taken['loss']:.4g} and {taken['vcf']:.3g}; a "
        "baseline is shown, not taken."
        for _, row in rows.iterrows()
        if row["allowed"] or row["loss"] < taken["loss"]
    ]


def _just_beyond(table: pd.DataFrame, chosen: str, allowance: Allowance, joined: dict[str, Judged]) -> list[str]:
    """The candidate next to the tolerance that would clearly vary less, and the tolerance that would allow it."""
    taken = table[table["name"] == chosen].iloc[0]
    beyond = table[table["kind"].isin(ROUTES) & ~table["allowed"] & (table["vcf"] < _CLEARLY * taken["vcf"])]
    if beyond.empty or not allowance.explains_something:
        return []
    nearest = min(beyond["name"], key=lambda name: allowance.bound(joined[name]))
    needed = allowance.needed(joined[nearest])
    if needed is None:
        return []
    row, free = beyond.set_index("name").loc[nearest], table[table["kind"] == FREE].iloc[0]
    keeps = allowance.excess(joined[nearest]) <= 0
    said = "keeps to the tolerance on these rows, though not beyond chance" if keeps else "is beyond the tolerance"
    return [
        f"{nearest} would leave {_percent(row['vcf'] / free['vcf'])} of VCF, but {said}; a tolerance of {needed:g}"
        f"{', or more rows,' if keeps else ''} would allow it."
    ]


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"


def _bar(verbose: Any, planned: int) -> Any:
    if hasattr(verbose, "update"):
        verbose.total = planned
        return verbose
    return tqdm(total=planned, disable=not verbose, unit="training")
