"""What regressor and classifier share: roles, encoding, training."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ciplearn._core.columns import CATEGORY, TableEncoding
from ciplearn._core.errors import GraphError, InputError, InputTypeError, NumericalError
from ciplearn._core.numbers import non_negative
from ciplearn._core.random import as_seed
from ciplearn._core.wording import as_list
from ciplearn.causal import CausalGraph, Independence
from ciplearn.estimators.calling import naming_inputs, outputs
from ciplearn.estimators.further_inputs import FurtherInputs
from ciplearn.estimators.gamma_scale import fixed_scale, is_relative, outcome_scale
from ciplearn.estimators.missing import refuse_unpredictable, without_missing
from ciplearn.estimators.networks import Perceptron, network_of
from ciplearn.estimators.roles import Columns, Roles, settle_roles
from ciplearn.estimators.splitting import held_out_rows
from ciplearn.estimators.tables import read_table, read_weights
from ciplearn.kernels import Gaussian, Kernel
from ciplearn.kernels.base import StationaryKernel
from ciplearn.kernels.mixed import mixed_kernel
from ciplearn.learning import DatasetRows, Objective, Rows, TrainingRows, TrainingSettings, Validation, train
from ciplearn.learning.settings import chosen_device
from ciplearn.penalties import HSIC, Operator, Penalty, ResidualHSCIC

# Where an independence is to be kept and no gamma is named.
_DEFAULT_GAMMA = 1.0

# In fewer rows a category may well be seen once.
_ROWS_TO_JUDGE_NAMES = 50


class CIPEstimator(BaseEstimator, ABC):
    """A network trained with loss + gamma · penalty, where the penalty measures Ŷ ⊥ right | given."""

    def __init__(
        self,
        graph: CausalGraph | None = None,
        outcome: str | None = None,
        protected: Columns = None,
        context: Columns = None,
        inputs: Columns = None,
        adjustment: Columns = None,
        independence: Independence | None = None,
        gamma: float | None = None,
        gamma_scale: float | str = "auto",
        penalty: Penalty | None = None,
        prepare_once: bool = True,
        on_violation: str = "raise",
        missing: str = "error",
        module: nn.Module | Callable[[], nn.Module] | None = None,
        hidden: Sequence[int] = (64, 64),
        epochs: int = 100,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        device: str = "auto",
        mixed_precision: bool = False,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.outcome = outcome
        self.protected = protected
        self.context = context
        self.inputs = inputs
        self.adjustment = adjustment
        self.independence = independence
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.penalty = penalty
        self.prepare_once = prepare_once
        self.on_violation = on_violation
        self.missing = missing
        self.module = module
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.device = device
        self.mixed_precision = mixed_precision
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, tensors: Sequence[Any] = ()) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : pandas or polars frame, or array, shape (n, columns)
            Every observed column but the outcome; the roles say what each is for.
        y : array, shape (n,) or (n, outputs)
        sample_weight : array, shape (n,), optional
            Weights in the loss; the penalty counts every row alike.
        tensors : sequence of tensors or datasets with n entries each, optional
            What ``module`` takes beside the encoded table, images for example; a torch Dataset is read batch by batch.
        """
        rows, roles = self._read_rows(X, y, sample_weight, tensors)
        if self.module is None and tensors:
            raise InputError("The default network takes the table alone, got tensors; pass a module that takes them.")
        with naming_inputs(self.encoding_, len(tensors)):
            return self._train(rows, roles)

    @property
    def independence_(self) -> Independence | None:
        """The statement that the penalty enforces."""
        check_is_fitted(self, "roles_")
        return self.roles_.independence

    @property
    def verdict_(self) -> Any:
        """What the graph says about it, where there is a graph."""
        check_is_fitted(self, "roles_")
        return self.roles_.verdict

    def penalty_operator(self, X: Any) -> Operator:
        """Return the penalty's operator prepared on these rows, to judge any model with the same roles and encoding."""
        check_is_fitted(self, "roles_")
        if self.roles_.independence is None:
            raise InputError("There is no penalty where no independence is to be kept; name protected columns.")
        right, given = self._independence_rows(read_table(self, X, reset=False))
        return self._bound_penalty().prepare(right, given)

    def penalty_value(self, X: Any, tensors: Sequence[Any] = (), operator: Operator | None = None) -> float:
        """Return the penalty of the predictions on these rows.

        Parameters
        ----------
        X : table
        tensors : sequence of tensors, optional
            As in `fit`.
        operator : Operator, optional
            From `penalty_operator` on the same rows, where several models are judged on them.
        """
        prediction = self._objective().prediction(self._output(X, tensors)).cpu()
        return float((operator or self.penalty_operator(X))(prediction))

    @abstractmethod
    def _read_target(self, y: Any) -> np.ndarray:
        """Check y at the doorway."""

    @abstractmethod
    def _learn_target(self, target: np.ndarray) -> None:
        """Learn classes or ranges of the target."""

    @abstractmethod
    def _encode_target(self, target: np.ndarray) -> Tensor:
        """The target as the loss takes it."""

    @abstractmethod
    def _outcome(self, target: Tensor) -> tuple[Tensor, float]:
        """The prediction that is always right, shape (n, d), and the loss of the best constant one."""

    @abstractmethod
    def _fresh_perceptron(self, n_inputs: int) -> Perceptron:
        """The default network, not yet trained."""

    @abstractmethod
    def _prediction_kernel(self) -> Gaussian:
        """The kernel on predictions, where a penalty leaves its length scale open."""

    @abstractmethod
    def _objective(self) -> Objective:
        """The loss, and what of the output the penalty sees."""

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, tensors: Sequence[Any]) -> tuple[Rows, Roles]:
        """Check what was passed to `fit`, settle the roles and encode the rows."""
        table = read_table(self, X, reset=True)
        target = self._read_target(y)
        if len(table) != len(target):
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: X has {len(table)} rows and y has "
                f"{len(target)}; pass the same rows to both."
            )
        weights = None if sample_weight is None else read_weights(sample_weight, table)
        roles = self._settled_roles(table)
        table, kept = without_missing(table, roles.used, self.missing)
        if roles.protects_nothing(table):
            # A fold may lack what the whole table has, so this is no error.
            warnings.warn(f"{roles.nothing_protected(table)}, or pass rows that differ.", UserWarning, stacklevel=3)
        target, weights = target[kept], None if weights is None else weights[kept]
        extra = FurtherInputs.of(tensors, len(kept)).take(kept)
        self._learn_target(target)
        self.encoding_ = TableEncoding.of(table, roles.inputs)
        return self._training_rows(table, target, weights, extra, roles), roles

    def _roles_of(self, table: pd.DataFrame) -> Roles:
        """The roles that the arguments give to the columns of a table."""
        return settle_roles(
            table,
            graph=self.graph,
            outcome=self.outcome,
            protected=self.protected,
            context=self.context,
            inputs=self.inputs,
            adjustment=self.adjustment,
            independence=self.independence,
        )

    def _settled_roles(self, table: pd.DataFrame) -> Roles:
        roles = self._roles_of(table)
        if self.on_violation not in ("raise", "warn"):
            raise InputError(f"on_violation must be 'raise' or 'warn', got {self.on_violation!r}; pass one of these.")
        if roles.verdict is not None and not roles.verdict.holds:
            against = (f.sentence for f in roles.verdict.findings if not f.holds and f.condition != "paper")
            message = f"The graph does not certify {roles.independence}: {' '.join(against)}"
            if self.on_violation == "raise":
                raise GraphError(f'{message} Change the roles, or pass on_violation="warn" to enforce it all the same.')
            warnings.warn(message, UserWarning, stacklevel=3)
        return roles

    def _training_rows(
        self,
        table: pd.DataFrame,
        target: np.ndarray,
        weights: np.ndarray | None,
        extra: FurtherInputs,
        roles: Roles,
    ) -> Rows:
        right = given = None
        if roles.independence is not None:
            self.right_encoding_ = TableEncoding.of(table, roles.independence.right)
            self.given_encoding_ = TableEncoding.of(table, roles.independence.given)
            self._warn_of_names(len(table))
            right = torch.from_numpy(self.right_encoding_.numbers(table))
            given = torch.from_numpy(self.given_encoding_.numbers(table)) if roles.independence.given else None
        known = TrainingRows(
            inputs=(torch.from_numpy(self.encoding_.features(table)), *extra.tensors),
            target=self._encode_target(target),
            right=right,
            given=given,
            weights=None if weights is None else torch.from_numpy(weights).float(),
        )
        return known if extra.dataset is None else DatasetRows(known, extra.dataset)

    def _warn_of_names(self, n: int) -> None:
        names = [c.name for c in self.right_encoding_.columns if c.kind == CATEGORY and c.width > n / 2]
        if names and n >= _ROWS_TO_JUDGE_NAMES:
            warnings.warn(
                f"Most values of {as_list(names)} occur once, so that no penalty can tell what follows them; group the "
                f"values, or leave out a column of names.",
                UserWarning,
                stacklevel=4,
            )

    def _train(self, rows: Rows, roles: Roles, prepared: Operator | None = None) -> Self:
        settings = self._settings(roles)
        device = chosen_device(self.device)
        last: nn.Module | None = getattr(self, "module_", None) if self.warm_start else None
        module = self._fresh_module(rows, settings.seed) if last is None else last
        self.roles_ = roles
        rows, held_out = rows.to(device), None
        if self.early_stopping:
            rows, held_out = held_out_rows(rows, self.validation_fraction, settings.seed)
        penalty = self._bound_penalty() if settings.gamma > 0 else None
        operator: Penalty | Operator | None = penalty
        if penalty is not None and self.prepare_once:
            operator = prepared or penalty.prepare(rows.right, rows.given)
        settings = self._scaled(settings, rows, operator)
        validation = None
        if held_out is not None:
            judge = None if penalty is None else penalty.prepare(held_out.right, held_out.given)
            validation = Validation(held_out, judge)
        self.module_ = module.to(device)
        try:
            fit = train(
                self.module_,
                rows,
                self._objective(),
                settings,
                operator,
                validation,
                checkpoint=self.checkpoint,
                progress=bool(self.verbose),
            )
        except NumericalError:
            self.module_.eval()
            raise
        self.history_ = fit.history
        self.n_iter_ = len(fit.history)
        self.gamma_ = settings.gamma
        return self

    def _settings(self, roles: Roles) -> TrainingSettings:
        return TrainingSettings(
            gamma=self._effective_gamma(roles),
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            patience=self.patience if self.early_stopping else None,
            mixed_precision=bool(self.mixed_precision),
            seed=as_seed(self.random_state),
        )

    def _scaled(self, settings: TrainingSettings, rows: Rows, penalty: Penalty | Operator | None) -> TrainingSettings:
        """Settle what a gamma of 1 weighs."""
        if not is_relative(self.gamma_scale, self.penalty is None):
            self.gamma_scale_ = fixed_scale(self.gamma_scale)
        elif penalty is None or rows.right is None:
            self.gamma_scale_ = 1.0
        else:
            operator = penalty if isinstance(penalty, Operator) else penalty.prepare(rows.right, rows.given)
            outcome, constant_loss = self._outcome(rows.target)
            self.gamma_scale_ = outcome_scale(operator, outcome, rows.right, constant_loss)
        return replace(settings, gamma_scale=self.gamma_scale_)

    def _effective_gamma(self, roles: Roles) -> float:
        if roles.independence is not None:
            return _DEFAULT_GAMMA if self.gamma is None else non_negative(self.gamma, "gamma")
        if self.gamma is not None and non_negative(self.gamma, "gamma") > 0:
            raise InputError(
                f"gamma={self.gamma!r} asks for an independence, but no protected column was named; pass "
                f"protected=[...], a graph, or an independence."
            )
        return 0.0

    def _fresh_module(self, rows: Rows, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self.module is None:
                return self._fresh_perceptron(rows.inputs[0].shape[1])
            return network_of(self.module)

    def _bound_penalty(self) -> Penalty:
        """The penalty, with its kernels fitted to the kinds of the columns."""
        given = bool(self.roles_.independence and self.roles_.independence.given)
        penalty = self.penalty
        if penalty is None:
            kernel = self._prediction_kernel()
            penalty = ResidualHSCIC(kernel=kernel) if given else HSIC(kernel=kernel)
        if not isinstance(penalty, Penalty):
            raise InputTypeError(f"penalty must be a penalty, got {penalty!r}; pass for example HSCIC().")
        changes: dict[str, Kernel] = {}
        if isinstance(penalty.kernel, StationaryKernel) and penalty.kernel.is_open:
            # Read off the predictions it would shrink with them, and only a constant would be punished less.
            changes["kernel"] = replace(penalty.kernel, lengthscale=self._prediction_kernel().lengthscale)  # type: ignore[type-var]
        if hasattr(penalty, "right_kernel"):
            changes["right_kernel"] = mixed_kernel(penalty.right_kernel, self.right_encoding_.categories)
        if hasattr(penalty, "given_kernel") and given:
            changes["given_kernel"] = mixed_kernel(penalty.given_kernel, self.given_encoding_.categories)
        return replace(penalty, **changes)  # type: ignore[type-var]

    def _independence_rows(self, table: pd.DataFrame) -> tuple[Tensor, Tensor | None]:
        for name in (*self.right_encoding_.names, *self.given_encoding_.names):
            if name not in table.columns:
                raise InputError(f"The penalty needs column {name!r}, which is not in X; pass the whole table.")
        given = torch.from_numpy(self.given_encoding_.numbers(table)) if self.given_encoding_.columns else None
        return torch.from_numpy(self.right_encoding_.numbers(table)), given

    def _output(self, X: Any, tensors: Sequence[Any] = ()) -> Tensor:  # (n, k)
        check_is_fitted(self, "module_")
        table = read_table(self, X, reset=False)
        absent = [name for name in self.encoding_.names if name not in table.columns]
        if absent:
            raise InputError(f"Prediction needs the columns {absent}, which are not in X; pass them.")
        refuse_unpredictable(table, self.encoding_.names, self.missing)
        further = FurtherInputs.of(tensors, len(table))
        with naming_inputs(self.encoding_, len(tensors)):
            return outputs(self.module_, torch.from_numpy(self.encoding_.features(table)), further)
