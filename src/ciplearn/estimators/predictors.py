"""`CIPRegressor` for numbers, and `CIPClassifier` for labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from torch import Tensor

from ciplearn._core.column_sums import ColumnSum
from ciplearn._core.columns import CATEGORY, number_classes
from ciplearn._core.encoding import CategoryColumn
from ciplearn._core.errors import InputError
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.tables import read_labels, read_numbers
from ciplearn.kernels import Gaussian
from ciplearn.learning import BinaryCrossEntropy, CrossEntropy, Objective, SquaredError


class CIPRegressor(RegressorMixin, CIPEstimator):
    """Regression that would have said the same had the protected variables been different.

    Minimises mean squared error + gamma · scale · penalty(Ŷ, right | given) on outcomes scaled to [0, 1].

    Parameters
    ----------
    graph : CausalGraph, optional
        Its verdict on the roles gives the independence to enforce; ``outcome`` names the node that y holds.
    protected, context, inputs, adjustment : column names or positions, optional
        The roles of `CausalGraph.criterion`. Without a graph, ``protected`` and ``adjustment`` are taken as the
        independence Ŷ ⊥ protected | adjustment. The network sees ``inputs``.
    independence : Independence or list of them, optional
        The statement to enforce, for people who bring their own; given several, the most violated one is penalised.
    counterfactuals : causal model or list of them, optional
        Penalise predictions for varying between rows that this model imagines by ``counterfactual(rows, {name:
        values})``, as a model of `fit_scm` does; given several, the worst counts.
    gamma : float, optional
        Weight of the penalty; 1 where there is an independence and no gamma is named.
    gamma_scale : "auto", "outcome" or float
        What a gamma of 1 weighs. ``"outcome"``: loss / loss of a constant prediction + gamma · penalty / penalty of the
        outcome itself (at least a tenth of what it would be if the outcome followed a right-hand column), up to a
        factor. ``"auto"`` is that for the default penalty, and loss + gamma · penalty for one that is passed; a number
        is the factor itself.
    penalty : Penalty, optional
        By default `ResidualHSCIC` with leave-one-out ridge, or `HSIC` where nothing is conditioned on;
        ``HSCIC.paper()`` with ``prepare_once=False`` is the paper's. A kernel on predictions whose length scale is
        left open gets the default's.
    prepare_once : bool
        Prepare the penalty on all training rows once; ``False`` prepares it on each batch anew.
    on_violation : "raise" or "warn"
        What to do where the graph does not certify the independence.
    missing : "error", "drop" or "impute"
        What to do with missing values.
    module : torch.nn.Module or function that returns one, optional
        A network of your own: takes the encoded inputs (and the tensors passed to `fit`), returns one column per
        output. An instance starts from the weights it has, a function makes fresh ones from the seed.
    invariant_path : bool, optional
        Whether a network of its own, which no penalty can flatten, reads the inputs that the protected columns do not
        change. By default where the graph names such inputs and the network is the default one.
    hidden, epochs, batch_size, learning_rate, weight_decay, schedule, device, mixed_precision
        Of the default network; see `ciplearn.learners.Network`, which says them in one object.
    early_stopping, validation_fraction, patience
        As in `Network`. Below 4 000 rows chance in the rows held out decides too much: three default networks hold out
        other rows each, and their mean predicts (not with ``warm_start``; ``history_`` is that of the first).
    warm_start : bool
        Go on from the weights of the last fit, on the same columns, levels and classes.
    checkpoint : path, optional
        Where to write unfinished training, and to find it after a kill.
    verbose : bool
    random_state : int, numpy Generator, RandomState or None
        Same seed, same bytes.
    learner : Learner, optional
        `Network`, `Boosted` or `Linear` of `ciplearn.learners`; by default a network with the settings above.

    Attributes
    ----------
    module_ : torch.nn.Module
    roles_ : Roles
        Inputs, independence and verdict.
    history_ : tuple of dict
        Loss of each epoch, and the penalty where there was one.
    gamma_, gamma_scale_ : float
        The penalty's weight is their product.

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> X, y = people.drop(columns="income"), people["income"]
    >>> roles = {"graph": world.graph, "outcome": "income", "protected": ["sex", "age"]}
    >>> model = CIPRegressor(**roles, gamma=1, epochs=5, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (200,)
    >>> print(model.independence_)
    Ŷ ⊥ {age, hours, sex, training} | {region}
    """

    def predict(self, X: Any, tensors: Sequence[Any] = ()) -> np.ndarray:
        """Predict; only the inputs' columns are needed. A path, a pattern or a dataset is read block by block."""
        scaled = self._output(X, tensors).cpu().numpy().astype(float)
        values = self.target_low_ + scaled * self.target_range_
        return values[:, 0] if self.target_is_flat_ else values

    def _read_target(self, y: Any) -> np.ndarray:
        target = read_numbers(y)
        self.target_is_flat_ = target.ndim == 1
        return target.reshape(len(target), -1)

    def _learn_target(self, target: np.ndarray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            # What has no squares is refused below.
            mean, spread = target.mean(axis=0), target.std(axis=0)
        self._learn_moments(target.min(axis=0), target.max(axis=0), mean, spread, len(target))

    def _learn_summed_target(self, outcome: ColumnSum) -> None:
        if outcome.kind == CATEGORY:
            reason = "it holds labels" if outcome.stray is None else f"{outcome.stray[1]} holds {outcome.stray[0]!r}"
            why = f"The target {outcome.name!r} cannot be used: {reason}"
            raise InputError(f"{why}; pass finite numbers, or use CIPClassifier for labels.")
        self.target_is_flat_ = True
        low, high, mean, spread = (np.array([n]) for n in (outcome.low, outcome.high, outcome.mean, outcome.spread))
        self._learn_moments(low, high, mean, spread, outcome.known)

    def _learn_moments(self, low: np.ndarray, high: np.ndarray, mean: np.ndarray, spread: np.ndarray, n: int) -> None:
        self.target_low_ = low
        with np.errstate(over="ignore"):
            self.target_range_ = high - low
            squares = self.target_range_**2
        too_small = (squares < np.finfo(float).tiny) & (self.target_range_ > 0)
        if too_small.any() or not np.isfinite(squares).all():
            far = "too little" if too_small.any() else "too far"
            raise InputError(f"The target spans {low.min():g} to {high.max():g}, {far} for squared errors; rescale it.")
        if (self.target_range_ == 0).any():
            constant = low[self.target_range_ == 0][0]
            raise InputError(f"The target is constant, got {constant:g} in all {n} rows; there is nothing to learn.")
        self.target_centre_, self.target_spread_ = (mean - low) / self.target_range_, spread / self.target_range_

    def _encode_target(self, target: np.ndarray) -> Tensor:
        return torch.from_numpy((target - self.target_low_) / self.target_range_).float()

    def _outcome(self, target: Tensor) -> tuple[Tensor, float]:
        return target, float(target.var(dim=0, correction=0).mean())

    def _output_units(self) -> tuple[int, np.ndarray, np.ndarray]:
        return len(self.target_low_), self.target_centre_, self.target_spread_

    def _constant_output(self, target: Tensor) -> Tensor:
        return target.mean(dim=0, keepdim=True)

    def _prediction_kernel(self) -> Gaussian:
        # The frontier hardly depends on the length scale as long as it is of the order of the outcome's own spread;
        # far above, the kernel sees means only.
        return Gaussian(float(np.sqrt(2 * np.mean(self.target_spread_**2))))

    def _objective(self) -> Objective:
        return SquaredError()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = tags.target_tags.multi_output = True
        return tags


class CIPClassifier(ClassifierMixin, CIPEstimator):
    """Classification that would have said the same had the protected variables been different.

    Minimises cross-entropy + gamma · scale · penalty(p̂, right | given), where p̂ are the class probabilities. Parameters
    and attributes: see `CIPRegressor`; also ``classes_``.

    >>> from ciplearn import CIPClassifier, datasets
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> y = people.pop("income") > 43
    >>> model = CIPClassifier(protected=["sex"], adjustment=["region"], gamma=1, epochs=5, random_state=0)
    >>> model.fit(people, y).predict_proba(people).shape
    (200, 2)
    >>> model.classes_
    array([False,  True])
    """

    def predict_proba(self, X: Any, tensors: Sequence[Any] = ()) -> np.ndarray:
        """Return class probabilities, shape (n, classes); only the inputs' columns are needed."""
        output = self._output(X, tensors)
        probabilities = self._objective().prediction(output).cpu().numpy().astype(float)
        if len(self.classes_) == 2:
            return np.column_stack([1 - probabilities[:, 0], probabilities[:, 0]])
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any, tensors: Sequence[Any] = ()) -> np.ndarray:
        """Return the most probable classes."""
        best = self.predict_proba(X, tensors).argmax(axis=1)  # first: it refuses a model that is not fitted
        return self.classes_[best]

    def _read_target(self, y: Any) -> np.ndarray:
        return read_labels(y)

    def _learn_target(self, target: np.ndarray) -> None:
        self.classes_ = np.unique(target)
        if len(self.classes_) < 2:
            only = str(self.classes_[0])
            raise InputError(f"The target has only one class, got {only!r} in all {len(target)} rows; pass others.")

    def _learn_summed_target(self, outcome: ColumnSum) -> None:
        column = outcome.encoding()
        if isinstance(column, CategoryColumn):
            self._learn_target(np.array(column.levels))
            return
        if outcome.has_many_values:
            why = f"The target {outcome.name!r} has more than {len(outcome.values) - 1} different numbers"
            raise InputError(f"{why}; name it among the categories, or use CIPRegressor.")
        self._learn_target(number_classes(np.array(sorted(outcome.values))))

    def _encode_target(self, target: np.ndarray) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.classes_, target))

    def _outcome(self, target: Tensor) -> tuple[Tensor, float]:
        shares = target.bincount(minlength=len(self.classes_)) / len(target)
        entropy = float(-torch.xlogy(shares, shares).sum())
        certain = torch.nn.functional.one_hot(target, len(self.classes_)).float()
        return certain[:, 1:] if len(self.classes_) == 2 else certain, entropy

    def _output_units(self) -> tuple[int, None, None]:
        return 1 if len(self.classes_) == 2 else len(self.classes_), None, None

    def _constant_output(self, target: Tensor) -> Tensor:
        shares = target.bincount(minlength=len(self.classes_)) / len(target)
        return torch.logit(shares[1:])[None] if len(self.classes_) == 2 else shares.log()[None]

    def _prediction_kernel(self) -> Gaussian:
        # Wider, and it sees little but means; much narrower, and it bars the way from the constant that training starts
        # at, because it punishes any spread that chance correlates.
        return Gaussian(0.3)

    def _objective(self) -> Objective:
        return BinaryCrossEntropy() if len(self.classes_) == 2 else CrossEntropy(len(self.classes_))
