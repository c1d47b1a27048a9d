"""A fit is "prepare, then train at a gamma": all that trainings at several gammas share, made once.

Where rows are few, which of them say when to stop decides about the network. Several networks are trained then, each
stopped by other rows, and their mean predicts.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from sklearn.base import clone, is_classifier
from torch import Tensor, nn

from ciplearn._core.arguments import one_of, positive
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import GraphError, InputError, NotCertifiedWarning, NothingProtectedWarning, NumericalError
from ciplearn._core.rows import as_seed
from ciplearn._core.workers import Engine, OneProcess
from ciplearn.estimators.criteria import held_out
from ciplearn.estimators.imagined import imagined_rows
from ciplearn.estimators.learner import Training
from ciplearn.estimators.networks import Constant, LineNetwork, mean_of
from ciplearn.estimators.problem import Roles
from ciplearn.estimators.tables import (
    FurtherInputs,
    read_table,
    read_weights,
    same_rows,
    statement_rows,
    warn_of_names,
    without_missing,
)
from ciplearn.learning import DatasetRows, Rows, TrainingRows, Validation, train
from ciplearn.learning.invariance import (
    BatchDependence,
    CounterfactualVariance,
    Dependence,
    ImaginedRows,
    Invariance,
    Worst,
    counterfactual_scale,
    outcome_scale,
)
from ciplearn.learning.settings import Fit, TrainingSettings, chosen_device
from ciplearn.learning.stepper import train_stacked

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

INDEPENDENCE, COUNTERFACTUAL, NO_ROUTE = "independence", "counterfactual", "none"  # what training is penalised for
OUTCOME, AUTO = "outcome", "auto"  # in what gamma is counted
LINE = "line"  # no penalty: a mean of two predictors

# Networks whose mean predicts where they are stopped by fewer rows than these, each by rows of its own.
_NETWORKS, _ROWS_FOR_ONE_NETWORK = 3, 4000


@dataclass(frozen=True)
class Split:
    """What one network is trained with."""

    rows: Rows  # to train on, on the estimator's device
    validation: Validation | None  # rows that say when to stop
    invariance: Invariance | None  # None where nothing is to be kept, or gamma is 0 throughout

    def cut(self, places: Sequence[int]) -> Split:
        """Return the split with some of the inputs, and no penalty."""
        stopping = None if self.validation is None else Validation(self.validation.rows.cut(places))
        return Split(self.rows.cut(places), stopping, None)


@dataclass(frozen=True)
class Prepared:
    """What trainings at several gammas share."""

    estimator: CIPEstimator  # knows roles, encodings and target, and has no network yet
    splits: tuple[Split, ...]  # one per network; the mean of several predicts
    gamma_scale: float  # what a gamma of 1 weighs
    engine: Engine = field(default_factory=OneProcess)  # who trains

    @classmethod
    def of(cls, estimator: CIPEstimator, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        """Prepare a table for trainings at several gammas; the estimator itself is left as it is."""
        return prepare(clone(estimator), X, y, sample_weight)

    @property
    def rows(self) -> Rows:
        """The rows of the first split."""
        return self.splits[0].rows

    @property
    def invariance(self) -> Invariance | None:
        """What training is penalised for on them."""
        return self.splits[0].invariance

    def judge(self, X: Any, y: Any = None) -> Invariance | None:
        """Return the penalty prepared on other rows, for all models alike."""
        return None if self.invariance is None else self.estimator.penalty_on(X, y)

    def untrained(self, gamma: float, **settings: Any) -> CIPEstimator:
        """Return an estimator at a gamma that knows encoding and roles and has no network yet."""
        one = copy.copy(self.estimator)
        # A random state that is drawn from would give each copy other numbers than a fresh estimator gets.
        one.random_state = copy.deepcopy(self.estimator.random_state)
        return one.set_params(gamma=gamma, **settings)

    def trained(self, gamma: float, **settings: Any) -> CIPEstimator:
        """Train at a gamma."""
        return self.train(self.untrained(gamma, **settings))

    def train(self, estimator: CIPEstimator) -> CIPEstimator:
        """Train the network of an estimator that knows its gamma."""
        settings = estimator._settings()
        if settings.gamma > 0 or not is_relative(estimator):
            settings = replace(settings, gamma_scale=self.gamma_scale)
        last = getattr(estimator, "module_", None) if estimator.warm_start else None
        penalised = settings.gamma > 0

        def by_gradients(split: Split, settings: TrainingSettings, number: int) -> Fit:
            fresh = estimator._fresh_module(split.rows, settings.seed, penalised=penalised) if last is None else last
            estimator.module_ = fresh.to(split.rows.device)
            checkpoint = estimator.checkpoint
            if checkpoint is not None and number:
                # After a kill the networks before this one are trained anew, to the same end.
                checkpoint = f"{os.fspath(checkpoint)}.{number}"
            try:
                return self._fitted(estimator.module_, split, settings, checkpoint)
            except NumericalError:
                estimator.module_.eval()
                raise

        path = estimator._path_places() if penalised else []
        fits = []
        for number, split in enumerate(self.splits):
            seeded = replace(settings, seed=settings.seed + number)
            fits.append(_learnt(Training(estimator, split, seeded, path, partial(by_gradients, split, seeded, number))))
        estimator.module_ = mean_of([fit.module for fit in fits], is_classifier(estimator))
        estimator.history_, estimator.n_iter_ = fits[0].history, len(fits[0].history)
        estimator.gamma_, estimator.gamma_scale_ = settings.gamma, settings.gamma_scale
        estimator.trained_with_ = estimator.get_params(deep=False)
        return estimator

    def _fitted(self, module: nn.Module, split: Split, settings: TrainingSettings, checkpoint: Any = None) -> Fit:
        invariance = split.invariance if settings.gamma > 0 else None
        validation = split.validation
        if validation is not None and invariance is None:
            validation = Validation(validation.rows)
        given = (module, split.rows, self.estimator._objective(), settings, invariance, validation)
        fit = self.engine.train(partial(train, *given, checkpoint=checkpoint, verbose=bool(self.estimator.verbose)))
        # Trained elsewhere, it comes back.
        return replace(fit, module=fit.module.to(split.rows.device))

    def line(self, free: CIPEstimator, shares: Sequence[float]) -> list[CIPEstimator]:
        """Return the straight line from the predictor on unchanged inputs to the one trained here at gamma 0, ``free``.

        Shares are of ``free``'s variance of counterfactuals, between 0 and 1.
        """
        estimator, rows = self.estimator, self.rows
        places = estimator.encoding_.places(estimator.roles_.unchanged)
        path: nn.Module = Constant(estimator._constant_output(rows.target))
        if places:
            settings = replace(estimator._settings(estimator.preparation_seed_), gamma=0.0)
            fits = []
            for number, split in enumerate(self.splits):
                seeded, cut = replace(settings, seed=settings.seed + number), split.cut(places)
                generator = torch.Generator().manual_seed(seeded.seed)
                fresh = estimator.fresh_perceptron(cut.rows.inputs[0], generator).to(rows.device)
                fits.append(_learnt(Training(estimator, cut, seeded, (), partial(self._fitted, fresh, cut, seeded))))
            path = mean_of([fit.module for fit in fits], is_classifier(estimator))
        line = []
        for share in shares:
            one = copy.copy(free)
            ends = copy.deepcopy(path), copy.deepcopy(free.module_)
            one.module_ = LineNetwork(*ends, places, share, is_classifier(one)).to(rows.device).eval()
            one.route_, one.share_ = LINE, float(share)
            line.append(one)
        return line

    @property
    def can_stack(self) -> bool:
        """Whether many gammas and seeds can be trained as one network: one penalty, nothing but training."""
        one = self.estimator
        if one.learner is not None and not one.learner.is_network:
            return False
        alone = not one.setting("early_stopping") and one.checkpoint is None and not one.setting("mixed_precision")
        return alone and isinstance(self.rows, TrainingRows) and not isinstance(self.invariance, BatchDependence)

    def stacked(self, pairs: Sequence[tuple[float, int]], *, verbose: bool = False) -> list[CIPEstimator]:
        """Return one fitted estimator for each pair of gamma and seed, trained as one stacked network.

        Networks start from their own seeds and share the order of batches.
        """
        if not isinstance(self.rows, TrainingRows):
            raise InputError("Rows that are read batch by batch are trained one network at a time; use trained().")
        fitted = [self.untrained(gamma, random_state=seed) for gamma, seed in pairs]
        settings = [one._settings() for one in fitted]
        trained = train_stacked(
            [one._fresh_module(self.rows, each.seed) for one, each in zip(fitted, settings, strict=True)],
            [each.gamma for each in settings],
            self.rows,
            fitted[0]._objective(),
            replace(settings[0], gamma_scale=self.gamma_scale),
            self.invariance,
            verbose=verbose,
        )
        for one, each, fit in zip(fitted, settings, trained, strict=True):
            one.module_, one.history_, one.n_iter_ = fit.module, fit.history, one.setting("epochs")
            one.gamma_, one.gamma_scale_, one.trained_with_ = each.gamma, self.gamma_scale, one.get_params(deep=False)
        return fitted


def prepare(
    estimator: CIPEstimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    tensors: Sequence[Any] = (),
    imagined: Sequence[Any] | None = None,
    *,
    penalised: bool = True,
) -> Prepared:
    """Check what was passed to `fit`, settle the roles, encode the rows, and prepare the penalty if any gamma needs it.

    The estimator learns roles, encodings and the target's range or classes.
    """
    table = read_table(estimator, X, reset=True)
    target = estimator._read_target(y)
    same_rows(table, target)
    weights = None if sample_weight is None else read_weights(sample_weight, table)
    estimator.preparation_seed_ = preparation_seed(estimator.random_state)
    estimator.roles_ = roles = certified_roles(estimator, table, imagined)
    table, kept = without_missing(table, roles.used, estimator.missing)
    if roles.protects_nothing(table):
        # A fold may lack what the whole table has, so this is no error.
        sentence = f"{roles.nothing_protected(len(table))}, or pass rows that differ."
        warnings.warn(sentence, NothingProtectedWarning, stacklevel=4)
    target, weights = target[kept], None if weights is None else weights[kept]
    extra = FurtherInputs.of(tensors, len(kept)).take(kept)
    estimator._learn_target(target)
    estimator.encoding_ = TableEncoding.of(table, roles.inputs)
    estimator.statement_encodings_ = tuple(
        (TableEncoding.of(table, one.right), TableEncoding.of(table, one.given)) for one in roles.statements
    )
    device = chosen_device(estimator.setting("device"))
    right = given = None
    if estimator.statement_encodings_:
        right, given = statement_rows(estimator.statement_encodings_[0], table)
    held = TrainingRows(
        inputs=(torch.from_numpy(estimator.encoding_.features(table)), *extra.tensors),
        target=estimator._encode_target(target),
        right=right,
        given=given,
        weights=None if weights is None else torch.from_numpy(weights).float(),
    )
    rows: Rows = (held if extra.dataset is None else DatasetRows(held, extra.dataset)).to(device)
    keeps_something = penalised and estimator.route_ != NO_ROUTE
    worlds: list[ImaginedRows] = []
    if keeps_something and estimator.route_ == COUNTERFACTUAL:
        worlds = [world.to(device) for world in imagined_rows(estimator, table, target, imagined, kept)]
    elif keeps_something:
        warn_of_names(estimator.statement_encodings_, len(table))

    def penalties(table: pd.DataFrame, worlds: Sequence[ImaginedRows]) -> list[Invariance]:
        """What predictions on rows are penalised for: one per causal model, or one per statement."""
        if not keeps_something or estimator.route_ == COUNTERFACTUAL:
            return [CounterfactualVariance(world) for world in worlds]
        if not estimator.prepare_once:
            return [BatchDependence(estimator._bound_penalty(pair)) for pair in estimator.statement_encodings_]
        return [Dependence(estimator.operator_of(pair, table, device)) for pair in estimator.statement_encodings_]

    def side(places: Tensor) -> tuple[Rows, pd.DataFrame, list[Invariance]]:
        """Some of the rows, and the penalties prepared on them."""
        if len(places) == len(rows):
            return rows, table, penalties(table, worlds)
        part = table.iloc[places.numpy()]
        return rows.take(places), part, penalties(part, [world.take(places) for world in worlds])

    # Per network, the rows to train on, and those that say when to stop.
    cuts: list[tuple[Tensor, Tensor | None]] = [(torch.arange(len(rows)), None)]
    if estimator.setting("early_stopping"):
        # Networks of users' own may be large, and a warm start is that of one.
        alone = estimator.module is not None or estimator.warm_start
        share, seed = estimator.setting("validation_fraction"), estimator.preparation_seed_
        turns = range(1 if alone or len(rows) >= _ROWS_FOR_ONE_NETWORK else _NETWORKS)
        cuts = [*(held_out(len(rows), share, seed, turn) for turn in turns)]
    sides = [(side(train_on), None if stop_on is None else side(stop_on)) for train_on, stop_on in cuts]
    # The rows that the first network trains on say what a gamma of 1 weighs, for all of them.
    scale, units = gamma_units(estimator, *sides[0][0])
    splits = []
    for (train_on, _, each), stop_on in sides:
        validation = None if stop_on is None else Validation(stop_on[0], worst(stop_on[2], units))
        splits.append(Split(train_on, validation, worst(each, units)))
    return Prepared(estimator, tuple(splits), scale)


def _learnt(training: Training) -> Fit:
    """Let the estimator's learner train; without one it is a network, in the usual loop."""
    learner = training.estimator.learner
    return training.by_gradients() if learner is None else learner.trained(training)


def preparation_seed(random_state: Any) -> int:
    """The seed of what trainings with other seeds share; without a random state it is the same in every process."""
    return 0 if random_state is None else as_seed(random_state)


def certified_roles(estimator: CIPEstimator, table: pd.DataFrame, imagined: Any) -> Roles:
    """The roles of the arguments; where dependence in the data is penalised, the graph must certify the statement."""
    roles = estimator._roles_of(table)
    one_of(estimator.on_violation, "on_violation", ("raise", "warn"))
    if estimator.counterfactuals is not None or imagined is not None:
        if estimator.counterfactuals is not None and not roles.protected:
            raise InputError("counterfactuals were passed, but no protected column was named; pass protected=[...].")
        estimator.route_ = COUNTERFACTUAL
        return roles
    estimator.route_ = INDEPENDENCE if roles.statements else NO_ROUTE
    # A statement that was named beside the graph is enforced as it stands.
    if estimator.independence is None and roles.verdict is not None and not roles.verdict.holds:
        against = (f.sentence for f in roles.verdict.findings if not f.holds and f.condition != "paper")
        message = f"The graph does not certify {roles.independence}: {' '.join(against)}"
        if estimator.on_violation == "raise":
            raise GraphError(f'{message} Change the roles, or pass on_violation="warn" to enforce it all the same.')
        warnings.warn(message, NotCertifiedWarning, stacklevel=4)
    return roles


def worst(each: Sequence[Invariance], units: Sequence[float]) -> Invariance | None:
    """Return the penalty that counts the worst of several, each in its own unit."""
    return Worst(tuple(each), tuple(units)) if len(each) > 1 else next(iter(each), None)


def is_relative(estimator: Any) -> bool:
    """Whether gamma is counted in a unit of the table: by default for all but a penalty that was passed."""
    scale = estimator.gamma_scale
    if not isinstance(scale, str):
        return False
    if scale not in (OUTCOME, AUTO):
        raise InputError(f"gamma_scale must be 'auto', 'outcome' or a number, got {scale!r}; pass one of these.")
    return scale == OUTCOME or estimator.penalty is None or estimator.counterfactuals is not None


def gamma_units(
    estimator: Any, rows: Rows, table: pd.DataFrame, each: Sequence[Invariance]
) -> tuple[float, tuple[float, ...]]:
    """What a gamma of 1 weighs, and the units in which several penalties are compared."""
    if not is_relative(estimator):
        return compared(estimator, [compared(estimator, [])[0]] * len(each))
    scales, (outcome, constant_loss) = [], estimator._outcome(rows.target)
    for number, penalty in enumerate(each):
        if isinstance(penalty, CounterfactualVariance):
            scales.append(counterfactual_scale(penalty, rows, outcome, constant_loss))
            continue
        encodings = estimator.statement_encodings_[number]
        prepared = penalty.operator if isinstance(penalty, Dependence) else None
        operator = prepared or estimator.operator_of(encodings, table, rows.device)
        right = statement_rows(encodings, table)[0].to(rows.device)
        scales.append(outcome_scale(operator, outcome, right, constant_loss))
    return compared(estimator, scales)


def compared(estimator: Any, scales: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """The same from what a gamma of 1 weighs for each penalty alone; without any, for none."""
    if not scales:
        # The number that was passed, or 1 where gamma is the penalty's plain weight.
        scale = estimator.gamma_scale
        return 1.0 if is_relative(estimator) or isinstance(scale, str) else positive(scale, "gamma_scale"), ()
    return scales[0] if len(scales) == 1 else 1.0, tuple(1 / scale for scale in scales)
