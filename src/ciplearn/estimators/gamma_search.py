"""`GammaSearch`: the largest gamma that a tolerance on predictive performance allows."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import _safe_indexing as take
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ciplearn._core.arguments import check_flags, non_negative, positive, whole
from ciplearn._core.errors import InputError, InputTypeError, NothingGainedWarning
from ciplearn._core.rows import as_seed
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Allowance, Judged, checked_criterion, judging_splits, rows_of
from ciplearn.estimators.preparation import NO_ROUTE, Prepared, prepare
from ciplearn.learning.frontier import ChosenGamma, Frontier, Point, checked_interval, largest_allowed_gamma
from ciplearn.learning.invariance import Invariance

# A penalty has levelled off unless ten times the gamma lowers it to less than this share; folds of few rows.
_STILL_FALLS, _FOLDS = 0.9, 5


@dataclass(eq=False, repr=False)
class GammaSearch(MetaEstimatorMixin, BaseEstimator):
    """Train without a penalty, fix what may be lost, and bisect for the largest gamma within that.

    The paper's procedure, with a tolerance that holds on new rows: what is lost is compared row by row with the
    unconstrained predictor, and an upper bound of it has to keep to the tolerance.

    Parameters
    ----------
    estimator : CIPRegressor or CIPClassifier
        With its roles; its gamma is replaced.
    tolerance : float
        The share of what the unconstrained predictor explains that may be lost: 0.1 gives up at most a tenth of how
        much better than a constant it is. With ``scoring="penalty"`` a bound on the penalty itself, and the smallest
        gamma that meets it is sought.
    scoring : "loss", "auc", "score", "balanced_accuracy" or "penalty", optional
        What the tolerance is about; the loss by default: squared error, or log loss.
    low, high, max_trials
        Ends of the search, and the largest number of gammas to try.
    validation_fraction : float
        Share of the rows that judge where there is one split; training never sees them.
    cv : int, optional
        1 for a single split; with k every row judges once and each gamma is trained k times. By default 5 below 4 000
        rows, and 1 from there on.
    refit : bool
        Train once more on all rows with the chosen gamma.
    verbose : bool or progress bar
        Show a bar, or count trainings on one that is passed.
    random_state : int, Generator, RandomState or None
        Of the splits. ``measure`` and ``folds`` are former names of ``scoring`` and ``cv``.

    Attributes
    ----------
    best_gamma_ : float
        0 if even the smallest gamma is beyond the tolerance.
    best_estimator_ : estimator
    base_score_, explained_ : float
        What is scored without a penalty, and how much better than a constant that predictor is.
    frontier_ : Frontier
        Every gamma that was tried, 0 included: loss, score, penalty and what is scored on the rows that judge.
    models_ : mapping from gamma to estimator
        The models of ``frontier_``, trained without the rows that judge; of several folds the first.
    remark_ : str
        What to know about the ends of the interval; empty if nothing.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, GammaSearch, datasets
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> y = people.pop("income")
    >>> model = CIPRegressor(protected=["sex", "age"], epochs=5, random_state=0)
    >>> search = GammaSearch(model, tolerance=0.3, cv=1, max_trials=3, random_state=0).fit(people, y)
    >>> search.best_gamma_ in search.models_
    True
    """

    estimator: Any
    tolerance: float = 0.10
    scoring: str | None = None
    low: float = 1e-4
    high: float = 1e4
    max_trials: int = 12
    validation_fraction: float = 0.2
    cv: int | None = None
    refit: bool = True
    verbose: Any = False
    random_state: Any = None
    measure: str | None = None
    folds: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search on splits of the rows, then train on all of them."""
        if not isinstance(self.estimator, CIPEstimator):
            kind = type(self.estimator).__name__
            advice = "put the search into the pipeline, as its last step" if kind == "Pipeline" else "pass one"
            raise InputTypeError(f"The search is over a CIPRegressor or CIPClassifier, got {kind}; {advice}.")
        scoring, cv = self._renamed("scoring", "measure"), self._renamed("cv", "folds")
        measure = checked_criterion(scoring, classifier=is_classifier(self.estimator), further=("penalty",))
        whole(self.max_trials, "max_trials", minimum=2)
        # Before anything is trained.
        checked_interval(self.low, self.high)
        (positive if measure == "penalty" else non_negative)(self.tolerance, "tolerance")
        check_flags(self, "refit")
        passed = nullcontext(self.verbose) if hasattr(self.verbose, "update") else None
        with passed or tqdm(total=self.max_trials + 1, disable=not self.verbose, unit="gamma") as bar:
            trials = _Trials(self, X, y, sample_weight, measure, cv, bar)
            choice = trials.within_bound() if measure == "penalty" else trials.within_tolerance()
        if choice.remark:
            warnings.warn(choice.remark, NothingGainedWarning, stacklevel=2)
        self.best_gamma_, self.remark_ = choice.gamma, choice.remark
        self.frontier_, self.models_ = Frontier(tuple(trials.points)), trials.models
        self.base_score_ = trials.points[0].measures[measure]
        self.explained_ = Allowance("loss" if measure == "penalty" else measure, 0.0, trials.judged[0.0]).explained
        self.best_estimator_ = self.models_[self.best_gamma_]
        if self.refit:
            prepared = prepare(clone(self.estimator), X, y, sample_weight, penalised=self.best_gamma_ > 0)
            self.best_estimator_ = prepared.trained(self.best_gamma_)
        return self

    def _renamed(self, name: str, former: str) -> Any:
        """The value of a parameter, also where it was passed under its former name."""
        value, old = getattr(self, name), getattr(self, former)
        if old is None:
            return value
        if value is not None:
            raise InputError(f"{former}= is the former name of {name}=, got both; drop {former}=.")
        warnings.warn(f"{former}= of GammaSearch is now {name}=; type {name}=.", DeprecationWarning, stacklevel=3)
        return old

    @property
    def _chosen(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen model."""
        return np.asarray(self._chosen.predict(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of the chosen model."""
        return np.asarray(self._chosen.predict_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """R² or accuracy of the chosen model."""
        return float(self._chosen.score(X, y))

    def penalty_value(self, X: Any) -> float:
        """Return the penalty of the chosen model's predictions on these rows."""
        return float(self._chosen.penalty_value(X))

    # Those of the chosen model; names only where a table was passed, classes only in classification.
    verdict_, n_features_in_, feature_names_in_, classes_ = (
        property(attrgetter(f"_chosen.{name}"))
        for name in ("verdict_", "n_features_in_", "feature_names_in_", "classes_")
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags


class _Trials:
    """Trainings at one gamma after the other, all on the same rows and judged on the same others."""

    def __init__(
        self, search: GammaSearch, X: Any, y: Any, sample_weight: Any, measure: str, cv: int | None, bar: Any
    ) -> None:
        self.search, self.measure, self.bar = search, measure, bar
        self.models: dict[float, Any] = {}
        self.points: list[Point] = []
        self.judged: dict[float, Judged] = {}
        self.folds: list[tuple[Prepared, tuple[Any, Any, Any], Invariance | None]] = []
        labels = y if is_classifier(search.estimator) else None
        splits = judging_splits(X, y, search.validation_fraction, as_seed(search.random_state), labels, cv, _FOLDS)
        n = sum(len(judge) for _, judge in splits) if len(splits) > 1 else sum(map(len, splits[0]))
        if sample_weight is not None and np.shape(sample_weight) != (n,):
            shape = f"{np.shape(sample_weight)} for {n} rows"
            raise InputError(f"sample_weight must be one number per row, got {shape}; pass one weight per row.")
        for rows, judge in splits:
            weights, others = (None if sample_weight is None else take(sample_weight, part) for part in (rows, judge))
            prepared = Prepared.of(search.estimator, *rows_of(X, y, rows), weights)
            if others is not None and not (others := np.asarray(others, dtype=float)).any():
                raise InputError(f"The {len(judge)} rows that judge have no weight; give weights above 0 to more rows.")
            judging = rows_of(X, y, judge)
            self.folds.append((prepared, (*judging, others), prepared.judge(*judging)))

    def measured(self, gamma: float) -> dict[str, float]:
        folds, penalties = [], []
        for prepared, (X, y, weights), penalty in self.folds:
            model = prepared.trained(gamma)
            folds.append(Judged.of(model, X, y, weights))
            self.models.setdefault(gamma, model)
            if penalty is not None:
                penalties.append(model.penalty_value(X, penalty=penalty))
        judged = self.judged[gamma] = reduce(Judged.joined, folds)
        wanted = dict.fromkeys(["loss", "score", *([self.measure] if self.measure in CRITERIA else [])])
        measures = {name: CRITERIA[name](judged) for name in wanted}
        if penalties:
            measures["penalty"] = float(np.mean(penalties))
        self.points.append(Point(gamma, 0, measures))
        self.bar.update()
        self.bar.set_postfix(gamma=f"{gamma:.3g}", **{name: f"{value:.3g}" for name, value in measures.items()})
        return measures

    def within_tolerance(self) -> ChosenGamma:
        search = self.search
        self.measured(0.0)
        allowance = Allowance(self.measure, search.tolerance, self.judged[0.0])
        if not allowance.explains_something:
            reached = f"{self.measure} {self.points[0].measures[self.measure]:.3g}"
            why = f"Even without a penalty the predictor is no better than a constant ({reached})"
            share = "so a tolerance has nothing to be a share of; gamma is 0"
            return ChosenGamma(0.0, f"{why}, {share}. Add inputs that tell the outcome, or rows.")

        def excess(gamma: float) -> float:
            self.measured(gamma)
            return allowance.bound(self.judged[gamma])

        return largest_allowed_gamma(excess, lambda value: value <= 0, search.low, search.high, search.max_trials)

    def within_bound(self) -> ChosenGamma:
        search = self.search
        low, high, bound = search.low, search.high, search.tolerance
        if self.folds[0][0].estimator.route_ == NO_ROUTE:
            raise InputError("There is no penalty to bound where nothing is to be kept; name protected columns.")
        self.measured(0.0)
        largest_allowed_gamma(
            lambda gamma: self.measured(gamma)["penalty"], lambda value: value > bound, low, high, search.max_trials
        )
        penalties = {point.gamma: point.measures["penalty"] for point in self.points}
        if min(penalties.values()) > bound:
            # Does the penalty still fall where the interval ends?
            near = max(low, high / 10)
            penalties[near] = self.measured(near)["penalty"]
        if meeting := [gamma for gamma, penalty in penalties.items() if penalty <= bound]:
            return ChosenGamma(min(meeting), "")
        falls = penalties[high] < _STILL_FALLS * penalties[near]
        why = f"Even gamma {high:g} does not meet the bound {bound:g}: the least penalty reached is"
        least = f"{min(penalties.values()):.3g}, and a bound below what a constant prediction has cannot be met"
        advice = "raise high" if falls else "the penalty no longer falls, so raise the bound"
        return ChosenGamma(high, f"{why} {least}; {advice}.")
