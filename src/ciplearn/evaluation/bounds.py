"""Bounds on VCF that need no causal model, only rows and a valid adjustment set.

Let the predictor read nothing beyond A, W and S, and let S be valid: given S, A is as if drawn at random. Then

    E_S Var_{a′} E[Ŷ | a′, S]  ≤  VCF  ≤  E[ω (Ŷ − m(S))²],   ω = p(A) / p(A | S), a′ ~ P(A),

for every function m. The lower bound averages over the people who share S before it looks at A; the upper bound counts
all that moves a prediction beside S as if A had moved it. Both are means of what rows show, given two regressions:
g(a, s) = E[Ŷ | a, s] and r(a, s) = E[(Ŷ − m(S))² | a, s], and a density ratio. They are estimated across folds, with
the corrections that make an error of a regression count only in products with an error of the ratio:

    lower:  Var_{a′} g(a′, S) + 2 ω (g(A, S) − m(S)) (Ŷ − g(A, S)),
    upper:  E_{a′} r(a′, S) + ω ((Ŷ − m(S))² − r(A, S)),

with m(S) = E_{a′} g(a′, S). An error of g by itself makes the lower bound smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ciplearn._core.arguments import whole
from ciplearn._core.columns import check_cells, checked_table
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.plain_data import fields_as_data
from ciplearn._core.rows import RandomState, as_generator
from ciplearn.causal.names import Names, as_names
from ciplearn.evaluation.interventions import InterventionLaw, Interventions, Spread, Support
from ciplearn.evaluation.predictors import Predictor
from ciplearn.evaluation.scores import bootstrap_interval
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals, typical
from ciplearn.scm.kinds import Array

FEWEST_ROWS = 50
_FOLDS, _LANDMARKS = 3, 150
_INTERVENTIONS = 50  # values of A that each row's regressions are averaged over

# Inverse penalties of the classifier of pairs that are tried, and shuffled pairs per seen one.
_STRENGTHS, _SHUFFLES = (0.1, 10.0, 1000.0), 2

# Below this share of rows that the weights are worth, a bound rests on a handful of them; above this share of pairs of
# A and S that no row is near, it rests on regressions beyond their data.
_LITTLE_OVERLAP, _MANY_OUTSIDE = 0.05, 0.25
_PAIRS = 5000  # pairs whose place relative to the data is looked up
_NEXT_TO_NOTHING = 1e-3  # a share of the variance of predictions that regressions cannot tell from none


@dataclass(frozen=True, eq=False)
class VCFBounds:
    """What the rows alone say about VCF: two bounds, and their 95 % intervals.

    ``overlap`` is the share of rows that the weights ω are worth, (Σ ω)² / (n Σ ω²): 1 where A does not depend on S;
    ``outside`` the share of pairs of one row's A and another row's S that no row is near; ``n_rows`` were used.

    >>> from ciplearn import datasets, vcf_bounds
    >>> people = datasets.applicants().sample(400, random_state=0)
    >>> vcf_bounds(lambda frame: frame["training"], people, protected="sex", given="region").alarm
    False
    """

    lower: float
    upper: float
    lower_interval: tuple[float, float]
    upper_interval: tuple[float, float]
    overlap: float
    outside: float
    protected: tuple[str, ...]
    given: tuple[str, ...]
    n_rows: int

    @property
    def alarm(self) -> bool:
        """Whether the bounds cross beyond their uncertainty, or hardly any overlap is left: then they say nothing."""
        return self.interval[0] > self.interval[1] or self._rest_on_few

    @property
    def _rest_on_few(self) -> bool:
        return self.overlap < _LITTLE_OVERLAP or self.outside > _MANY_OUTSIDE

    @property
    def interval(self) -> tuple[float, float]:
        """From the low end of the lower bound to the high end of the upper."""
        return self.lower_interval[0], self.upper_interval[1]

    def contradicts(self, vcf: VarianceOfCounterfactuals) -> bool:
        """Whether an interval of VCF lies outside the bounds, in spite of the uncertainty of both."""
        low, high = self.interval
        return not self.alarm and (vcf.interval[1] < low or vcf.interval[0] > high)

    def beside(self, vcf: VarianceOfCounterfactuals, amount: Callable[[float], str] | None = None) -> str:
        """Say how a VCF of a causal model agrees with the rows, or its √(2 VCF) where ``amount`` writes such."""
        ours, low, high = (f"{value:.3g}" for value in (vcf.value, *self.interval))
        ours = f"the causal model's VCF of {ours}"
        if amount is not None:
            ours, low, high = (amount(typical(value)) for value in (vcf.value, *self.interval))
            ours = f"the causal model's typical difference of {ours}"
        if self.alarm:
            return f"{self} So the rows can neither confirm nor contradict {ours}."
        ours = f"T{ours[1:]}"
        between = f"without any causal model, the rows put it between {low} and {high}"
        if self.contradicts(vcf):
            which = "less" if vcf.interval[1] < self.interval[0] else "more"
            return f"{ours} is {which} than the rows allow: {between}, so do not trust the model's counterfactuals."
        if vcf.doubts:
            between = f"the rows alone, which put it between {low} and {high}"
            return f"{ours} is in doubt. It agrees with {between}: without that model, nobody knows more."
        return f"{ours} agrees with the rows: {between}."

    def __str__(self) -> str:
        given, protected = ", ".join(self.given), ", ".join(self.protected)
        if self._rest_on_few:
            return (
                f"The bounds without a model ({self.lower:.3g} and {self.upper:.3g}) cannot be read: given "
                f"{given or 'nothing'}, the rows show too few values of {protected} "
                f"({100 * self.outside:.0f} % of the pairs that would be needed are near no row)."
            )
        if self.alarm:
            return (
                f"The bounds without a model cannot be read: the lower one, {self.lower:.3g}, is above the upper one, "
                f"{self.upper:.3g}; some values of {protected} are too rare given {given or 'nothing'}, or rows are "
                "too few to tell."
            )
        ends = [f"{low:.3g} to {high:.3g}" for low, high in (self.lower_interval, self.upper_interval)]
        return (
            f"Without any causal model, VCF lies between {self.lower:.3g} (95 % interval {ends[0]}) and "
            f"{self.upper:.3g} ({ends[1]}), if {given or 'the empty set'} is a valid adjustment set."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        return fields_as_data(self, alarm=self.alarm, sentence=str(self))


def vcf_bounds(
    model: Any,
    table: pd.DataFrame,
    protected: Names,
    given: Names = (),
    *,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    max_rows: int = 3000,
    random_state: RandomState = 0,
) -> VCFBounds:
    """Bound the variance of counterfactuals without a causal model.

    Parameters
    ----------
    model, inputs, method, random_state
        See `variance_of_counterfactuals`.
    table, max_rows
        Rows that the model was not trained on; more than ``max_rows`` are sampled down.
    protected, given : column or list of columns
        A, and the adjustment set S. That S is valid, and that the model reads nothing beyond A, W and S, is what the
        bounds rest on; a certified verdict has both, with ``given=verdict.independence.given``.

    Examples
    --------
    >>> from ciplearn import datasets, vcf_bounds
    >>> people = datasets.applicants().sample(400, random_state=0)
    >>> bounds = vcf_bounds(lambda frame: frame["training"], people, protected="sex", given="region")
    >>> bounds.lower < bounds.upper
    True
    """
    checked_table(table, "table")
    right, s = as_names(protected, "protected"), as_names(given, "given")
    for role, names in (("protected", right), ("given", s)):
        missing = [name for name in names if name not in table.columns]
        if missing:
            raise InputError(f"{role} names {missing[0]!r}, which is no column of the table; name columns.")
    if not right or set(right) & set(s):
        raise InputError(f"protected and given must be disjoint and protected not empty, got {right} and {s}.")
    for name in (*right, *s):
        check_cells(table[name])
    generator = as_generator(random_state)
    max_rows = whole(max_rows, "max_rows", minimum=FEWEST_ROWS)
    if len(table) > max_rows:
        table = table.iloc[np.sort(generator.choice(len(table), max_rows, replace=False))]
    if len(table) < FEWEST_ROWS:
        raise InputError(f"The bounds need at least {FEWEST_ROWS} rows, got {len(table)}; pass more held-out rows.")
    predictor = Predictor.of(model, list(table.columns), inputs, method)
    answers = predictor.numbers(predictor.in_blocks(table))
    lower, upper, overlap, outside = _estimated(answers, table[list(right)], table[list(s)], generator)
    lower_interval, upper_interval = lower.interval(generator), upper.interval(generator)
    tellable = lower_interval[0] > _NEXT_TO_NOTHING * float(answers.var(axis=0).sum())
    return VCFBounds(
        lower=max(0.0, lower.value),
        upper=max(0.0, upper.value),
        lower_interval=lower_interval if tellable else (0.0, lower_interval[1]),
        upper_interval=upper_interval,
        overlap=overlap,
        outside=outside,
        protected=right,
        given=s,
        n_rows=len(table),
    )


@dataclass(frozen=True, eq=False)
class _Bound:
    value: float
    influences: Array  # (n,): of the rows

    @classmethod
    def of(cls, squares: Array, correction: Array, given: Interventions, law: InterventionLaw) -> _Bound:
        """Add to a mean over rows and values of A the correction of each row."""
        spread, n = Spread.of(squares, law.weights, given, law), len(squares)
        influences = spread.influence(np.arange(n), n, law) + correction - correction.mean()
        return cls(spread.value + float(correction.mean()), influences)

    def interval(self, generator: Generator) -> tuple[float, float]:
        return bootstrap_interval(self.influences, generator, (0.0, np.inf), self.value)


def _estimated(
    answers: Array, protected: pd.DataFrame, given: pd.DataFrame, generator: Generator
) -> tuple[_Bound, _Bound, float, float]:  # and the overlap, and the share of shuffled pairs of A and S outside
    law = InterventionLaw.of_rows(protected, _INTERVENTIONS)
    n, k, weights = len(protected), law.k, law.weights
    interventions = law.draw(n, generator)
    encoding = TableEncoding.of(protected, protected.columns)
    seen_a, imagined = (encoding.features(values).astype(np.float64) for values in (protected, law.distinct))
    context = TableEncoding.of(given, given.columns).features(given).astype(np.float64)
    fold = generator.permutation(n) % _FOLDS
    deviation, excess = np.zeros((n, k)), np.zeros((n, k))
    ratio, lower_correction, upper_correction = np.ones(n), np.zeros(n), np.zeros(n)
    for number in range(_FOLDS):
        out, seen = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        x = np.hstack([seen_a, context])
        pairs = _crossed(imagined, interventions, context, out)
        inner = _crossed(imagined, interventions, context, seen)
        ratio[out] = _ratio(seen_a, context, seen, generator)(x[out]) if given.shape[1] else 1.0
        held_out, trained_on = np.zeros(len(out)), np.zeros(len(seen))
        for output in answers.T:
            g = _regression(x[seen], output[seen], generator)
            at_pairs, fitted = g(pairs).reshape(len(out), k), g(x[out])
            mean = at_pairs @ weights
            deviation[out] += law.correction * np.square(at_pairs - mean[:, None])
            lower_correction[out] += 2 * ratio[out] * (fitted - mean) * (output[out] - fitted)
            held_out += np.square(output[out] - mean)
            trained_on += np.square(output[seen] - g(inner).reshape(len(seen), k) @ weights)
        r = _regression(x[seen], trained_on, generator)
        excess[out] = np.maximum(r(pairs), 0).reshape(len(out), k)
        upper_correction[out] = ratio[out] * (held_out - np.maximum(r(x[out]), 0))
    lower = _Bound.of(deviation, lower_correction, interventions, law)
    upper = _Bound.of(excess, upper_correction, interventions, law)
    overlap = float(ratio.sum() ** 2 / (n * np.square(ratio).sum()))
    if not context.shape[1]:
        return lower, upper, overlap, 0.0
    support = Support.of(pd.DataFrame(np.hstack([seen_a, context])))
    one, other = generator.integers(n, size=(2, _PAIRS))
    outside = 1 - support.holds(pd.DataFrame(np.hstack([seen_a[one], context[other]]))).mean()
    return lower, upper, overlap, float(outside)


def _crossed(imagined: Array, interventions: Interventions, context: Array, rows: Array) -> Array:
    """A's features of each row's interventions beside the row's own context."""
    seen = interventions.seen[rows] if interventions.seen is not None else np.zeros((0, 0), dtype=int)
    return np.hstack([imagined[seen.ravel()], np.repeat(context[rows], seen.shape[1], axis=0)])


def _regression(x: Array, y: Array, generator: Generator) -> Callable[[Array], Array]:
    """Regress on kernel features or with boosted trees, whichever does better on a quarter of the rows."""
    seed = int(generator.integers(2**31))
    trials = (
        make_pipeline(*_kernel_features(x, seed), RidgeCV(np.logspace(-6, 2, 9))),
        HistGradientBoostingRegressor(max_iter=100, min_samples_leaf=10, early_stopping=False, random_state=seed),
    )
    last = generator.permutation(len(x)) < len(x) // 4
    errors = [np.square(each.fit(x[~last], y[~last]).predict(x[last]) - y[last]).mean() for each in trials]
    chosen: Callable[[Array], Array] = trials[int(np.argmin(errors))].fit(x, y).predict
    return chosen


def _ratio(own: Array, context: Array, rows: Array, generator: Generator) -> Callable[[Array], Array]:
    """Estimate ω(a, s) = p(a) p(s) / p(a, s): the odds that a pair was shuffled rather than seen."""
    seed = int(generator.integers(2**31))
    last = generator.permutation(len(rows)) < len(rows) // 4
    kept, held_out = (_pairs(own, context, part, generator) for part in (rows[~last], rows[last]))
    features = make_pipeline(*_kernel_features(kept[0], seed)).fit(kept[0])
    seen, asked = features.transform(kept[0]), features.transform(held_out[0])
    lines = [LogisticRegression(C=strength, max_iter=500) for strength in _STRENGTHS]
    trees = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=100, min_samples_leaf=20, early_stopping=False, random_state=seed
    )
    answers = [each.fit(seen, kept[1]).predict_proba(asked) for each in lines]
    answers.append(trees.fit(*kept).predict_proba(held_out[0]))
    trials = [*(make_pipeline(features, line) for line in lines), trees]
    best = int(np.argmin([log_loss(held_out[1], each) for each in answers]))
    chosen = trials[best].fit(*_pairs(own, context, rows, generator))

    def odds(pairs: Array) -> Array:
        probability = chosen.predict_proba(pairs)
        ratio = np.asarray(probability[:, 1] / np.maximum(probability[:, 0], 1e-6))
        # The mean of ω over pairs as they are seen is 1.
        return ratio / ratio.mean()

    return odds


def _pairs(own: Array, context: Array, rows: Array, generator: Generator) -> tuple[Array, Array]:
    """Pairs of A and S as they were seen, and shuffled ones; and which of them were shuffled."""
    seen = np.hstack([own[rows], context[rows]])
    shuffled = [np.hstack([own[generator.permutation(rows)], context[rows]]) for _ in range(_SHUFFLES)]
    return np.vstack([seen, *shuffled]), np.repeat([0, 1], [len(rows), _SHUFFLES * len(rows)])


def _kernel_features(x: Array, seed: int) -> tuple[Any, ...]:
    n_components = min(_LANDMARKS, len(x) // 2)
    return StandardScaler(), Nystroem(gamma=0.5 / x.shape[1], n_components=n_components, random_state=seed)
