"""What regressor and classifier share: the arguments, fitting and predicting."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ciplearn._core.arguments import check_flags, non_negative
from ciplearn._core.column_sums import ColumnSum
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import as_seed
from ciplearn._core.tensors import torch_seeded
from ciplearn._core.workers import Engine, OneProcess
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.estimators.imagined import checked_models, imagined_rows
from ciplearn.estimators.learner import Learner, Network, check_learner
from ciplearn.estimators.networks import InvariantPath, Perceptron, Ramps, network_of, outputs
from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, NO_ROUTE, prepare
from ciplearn.estimators.problem import ROLES, Columns, Roles, settle_roles
from ciplearn.estimators.streaming import blocks_to_predict, fit_stream
from ciplearn.estimators.tables import (
    FurtherInputs,
    going_on,
    naming_inputs,
    read_table,
    rows_to_predict,
    statement_rows,
    warn_of_unseen,
)
from ciplearn.kernels import Gaussian, Kernel
from ciplearn.kernels.kernels import mixed_kernel
from ciplearn.learning import Objective, Rows, TrainingSettings
from ciplearn.learning.invariance import CounterfactualVariance, Dependence, Invariance, Worst
from ciplearn.penalties import HSIC, Operator, Penalty, ResidualHSCIC
from ciplearn.sources import as_source


@dataclass(eq=False, repr=False)
class EstimatorKeywords(BaseEstimator):
    """What estimators and baselines are told alike: roles of the columns, and how a network is made and trained."""

    graph: CausalGraph | None = None
    outcome: str | None = None
    protected: Columns = None
    context: Columns = None
    inputs: Columns = None
    _: KW_ONLY
    missing: str = "error"
    module: nn.Module | Callable[[], nn.Module] | None = None
    hidden: Sequence[int] = Network.hidden
    epochs: int = Network.epochs
    batch_size: int = Network.batch_size
    learning_rate: float = Network.learning_rate
    weight_decay: float = Network.weight_decay
    schedule: str = Network.schedule
    early_stopping: bool = Network.early_stopping
    validation_fraction: float = Network.validation_fraction
    patience: int = Network.patience
    device: str = Network.device
    mixed_precision: bool = Network.mixed_precision
    verbose: bool = False
    random_state: Any = None
    learner: Learner | None = None

    def setting(self, name: str) -> Any:
        """Return a setting of the training: the learner's, or the keyword of that name."""
        return getattr(self.learner, name, getattr(self, name))

    def training_settings(self, *, gamma: float, seed: int) -> TrainingSettings:
        """Return the settings as the training loop takes them."""
        names = ("epochs", "batch_size", "learning_rate", "weight_decay", "schedule", "mixed_precision")
        patience = self.setting("patience") if self.setting("early_stopping") else None
        return TrainingSettings(gamma, **{name: self.setting(name) for name in names}, patience=patience, seed=seed)


@dataclass(eq=False, repr=False)
class CIPEstimator(EstimatorKeywords, ABC):
    """A network trained with loss + gamma · penalty, where the penalty measures Ŷ ⊥ right | given."""

    adjustment: Columns = None
    independence: Independence | Sequence[Independence] | None = None
    counterfactuals: Any = None
    gamma: float | None = None
    gamma_scale: float | str = "auto"
    penalty: Penalty | None = None
    prepare_once: bool = True
    on_violation: str = "raise"
    _: KW_ONLY
    invariant_path: bool | None = None
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        tensors: Sequence[Any] = (),
        imagined: Sequence[Any] | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Train on a table.

        Parameters
        ----------
        X : pandas or polars frame, or array, shape (n, columns); or a table that streams
            Every observed column but the outcome; the roles say what each is for. A table that streams is a path, a
            pattern such as ``"rows/*.parquet"``, a pyarrow dataset or a Ray dataset: it holds the outcome too, and is
            never in memory as a whole.
        y : array, shape (n,) or (n, outputs); or str
            The outcome's name for a table that streams; by default the one that the estimator or its graph names.
        sample_weight : array, shape (n,), optional
            Weights in the loss; the penalty counts every row alike.
        tensors : sequence of tensors or datasets with n entries each, optional
            What ``module`` takes beside the encoded table, images for example; a torch Dataset is read batch by batch.
        imagined : sequence of worlds, optional
            The rows as they would have been under other values of the protected variables, where no causal model of the
            table can say it: per world a table like X, or a pair (table, tensors). The penalty is then the variance of
            the predictions between worlds.
        engine : Engine, optional
            Who does the work, for example ``ciplearn.scale.RayEngine(workers=2)``; by default this process.
        """
        if self.module is None and tensors:
            raise InputError("The default network takes the table alone, got tensors; pass a module that takes them.")
        penalised = self.gamma is None or non_negative(self.gamma, "gamma") > 0
        if self.counterfactuals is not None and not penalised:
            raise InputError("counterfactuals were passed with gamma=0, which ignores them; raise gamma or drop them.")
        check_learner(self)
        check_flags(self, "early_stopping", "warm_start", "prepare_once", "mixed_precision", "verbose")
        if self.invariant_path is not None:
            check_flags(self, "invariant_path")
        if not isinstance(X, pd.DataFrame) and (source := as_source(X)) is not None:
            return fit_stream(self, source, y, engine or OneProcess(), sample_weight, tensors, imagined)
        with going_on(self) as refuse_others:
            prepared = prepare(self, X, y, sample_weight, tensors, imagined, penalised=penalised)
            refuse_others()
            with naming_inputs(self.encoding_, len(tensors)):
                replace(prepared, engine=engine or OneProcess()).train(self)
        return self

    @property
    def independence_(self) -> Independence | None:
        """The statement that the penalty enforces; None on the counterfactual route, and where nothing is kept."""
        check_is_fitted(self, "roles_")
        return self.roles_.independence if self.route_ == INDEPENDENCE else None

    @property
    def verdict_(self) -> Verdict | None:
        """What the graph says about the roles, where there is a graph."""
        check_is_fitted(self, "roles_")
        return self.roles_.verdict

    def penalty_on(self, X: Any, y: Any = None) -> Invariance:
        """Return the penalty prepared on these rows, for any model with the same roles and encoding.

        It is the largest of several penalties as they are; training compares them relative to the scale of each. ``y``
        is for causal models in which the outcome acts on an input.
        """
        check_is_fitted(self, "roles_")
        if self.route_ == NO_ROUTE:
            raise InputError("There is no penalty where no independence is to be kept; name protected columns.")
        table = read_table(self, X, reset=False)
        parts: list[Invariance]
        if self.route_ == COUNTERFACTUAL:
            if self.counterfactuals is None:
                raise InputError("The model was trained on worlds that were passed to fit; no others can be imagined.")
            parts = [CounterfactualVariance(worlds) for worlds in imagined_rows(self, table, y)]
        else:
            parts = [Dependence(self.operator_of(encodings, table)) for encodings in self.statement_encodings_]
        return parts[0] if len(parts) == 1 else Worst(parts, (1.0,) * len(parts))

    def penalty_operator(self, X: Any) -> Operator:
        """Return the operator Q of the statement prepared on these rows."""
        penalty = self.penalty_on(X)
        if not isinstance(penalty, Dependence) or not isinstance(penalty.operator, Operator):
            raise InputError("Only a single independence has an operator; use penalty_on for other penalties.")
        return penalty.operator

    def penalty_value(self, X: Any, tensors: Sequence[Any] = (), penalty: Invariance | None = None) -> float:
        """Return the penalty of the predictions on these rows.

        ``penalty``: from `penalty_on` for the same rows, where several models are measured on them.
        """
        penalty, objective = penalty or self.penalty_on(X), self._objective()
        prediction = objective.prediction(self._output(X, tensors)).cpu()
        index = torch.arange(len(prediction))
        imagined = prediction[:0]
        if (more := penalty.imagined_inputs(index)) is not None:
            imagined = objective.prediction(outputs(self.module_, more[0], FurtherInputs(more[1:]))).cpu()
        with torch.no_grad():
            return float(penalty.penalty(prediction, imagined, index, None))

    @abstractmethod
    def _read_target(self, y: Any) -> np.ndarray:
        """Check y at the doorway."""

    @abstractmethod
    def _learn_target(self, target: np.ndarray) -> None:
        """Learn classes or ranges of the target."""

    @abstractmethod
    def _learn_summed_target(self, outcome: ColumnSum) -> None:
        """The same from what was summed over rows that stream."""

    @abstractmethod
    def _encode_target(self, target: np.ndarray) -> Tensor:
        """The target as the loss takes it."""

    @abstractmethod
    def _outcome(self, target: Tensor) -> tuple[Tensor, float]:
        """The prediction that is always right, shape (n, d), and the loss of the best constant one."""

    @abstractmethod
    def _output_units(self) -> tuple[int, Any, Any]:
        """How many outputs the network has, and their centre and spread where these are not 0 and 1."""

    @abstractmethod
    def _constant_output(self, target: Tensor) -> Tensor:
        """What a network that knows nothing of a row should return, shape (1, outputs)."""

    @abstractmethod
    def _prediction_kernel(self) -> Gaussian:
        """The kernel on predictions, where a penalty leaves its length scale open."""

    @abstractmethod
    def _objective(self) -> Objective:
        """The loss, and what of the output the penalty sees."""

    def _roles_of(self, table: pd.DataFrame) -> Roles:
        first = None if self.counterfactuals is None else checked_models(self.counterfactuals)[0]
        roles = {name: getattr(self, name) for name in ROLES}
        return settle_roles(table, **roles, model_graph=getattr(first, "graph", None))

    def _settings(self, seed: int | None = None) -> TrainingSettings:
        seed = as_seed(self.random_state) if seed is None else seed
        return self.training_settings(gamma=self._effective_gamma(), seed=seed)

    def _effective_gamma(self) -> float:
        if self.route_ != NO_ROUTE:
            # 1 where something is to be kept and no gamma is named.
            return 1.0 if self.gamma is None else non_negative(self.gamma, "gamma")
        if self.gamma is not None and non_negative(self.gamma, "gamma") > 0:
            why = f"gamma={self.gamma!r} asks for an independence, but no protected column was named"
            raise InputError(f"{why}; pass protected=[...], a graph, or an independence.")
        return 0.0

    def fresh_perceptron(
        self, inputs: Tensor, generator: torch.Generator, *, centred: bool = True, smooth: bool = False
    ) -> Perceptron:
        """Return the default network, not yet trained, for the target that was learnt and rows like the inputs.

        Not ``centred``, it is added to another network: its answers begin around zero. A ``smooth`` one has no ramps.
        """
        n_outputs, centre, spread = self._output_units()
        sizes = inputs.shape[1], self.setting("hidden"), n_outputs
        ramps = None if smooth else Ramps.of(inputs)
        return Perceptron(*sizes, centre if centred else None, spread, generator, ramps)

    def _path_places(self) -> list[int]:
        """Where the inputs of an invariant path stand; none where there shall be no path."""
        places = self.encoding_.places(self.roles_.unchanged)
        if self.invariant_path and not places:
            why = "An invariant path was asked for, but no input is known not to descend from the protected columns"
            raise InputError(f"{why}; pass a graph, or invariant_path=False.")
        wanted = self.module is None if self.invariant_path is None else bool(self.invariant_path)
        # With nothing but unchanged inputs the network is that path.
        return places if wanted and len(places) < self.encoding_.width else []

    def _fresh_module(self, rows: Rows, seed: int, *, penalised: bool = True) -> nn.Module:
        """The network, not yet trained; where the graph tells what A leaves alone, with a path for it."""
        # Without a penalty there is nothing for an invariant path to be kept from.
        places = self._path_places() if penalised else []
        generator = torch.Generator().manual_seed(seed)
        table = rows.inputs[0]
        if self.module is None:
            # A network that can swing fast hides from a penalty on the data's own rows what it says of others.
            smooth = penalised and self.route_ == INDEPENDENCE
            rest: nn.Module = self.fresh_perceptron(table, generator, centred=not places, smooth=smooth)
        else:
            with torch_seeded(seed):
                rest = network_of(self.module)
        return InvariantPath(self.fresh_perceptron(table[:, places], generator), rest, places) if places else rest

    def _bound_penalty(self, encodings: tuple[TableEncoding, TableEncoding]) -> Penalty:
        """The penalty, with its kernels fitted to the kinds of a statement's columns."""
        right, given = encodings
        penalty = self.penalty
        if penalty is None:
            kernel = self._prediction_kernel()
            penalty = ResidualHSCIC(kernel=kernel) if given.columns else HSIC(kernel=kernel)
        if not isinstance(penalty, Penalty):
            raise InputTypeError(f"penalty must be a penalty, got {penalty!r}; pass for example HSCIC().")
        changes: dict[str, Kernel] = {"kernel": penalty.kernel.with_lengthscale(self._prediction_kernel().width)}
        if hasattr(penalty, "right_kernel"):
            changes["right_kernel"] = mixed_kernel(penalty.right_kernel, right.categories)
        if hasattr(penalty, "given_kernel") and given.columns:
            changes["given_kernel"] = mixed_kernel(penalty.given_kernel, given.categories)
        return replace(penalty, **changes)  # type: ignore[type-var]

    def operator_of(
        self, encodings: tuple[TableEncoding, TableEncoding], table: pd.DataFrame, device: Any = "cpu"
    ) -> Operator:
        """Return the operator of a statement, prepared on the rows of a table."""
        right, given = statement_rows(encodings, table)
        given = None if given is None else given.to(device)
        return self._bound_penalty(encodings).prepare(right.to(device), given)

    def _output(self, X: Any, tensors: Sequence[Any] = ()) -> Tensor:  # (n, k)
        check_is_fitted(self, "module_")
        if not isinstance(X, pd.DataFrame) and (source := as_source(X)) is not None:
            # One block of rows after the other; their order is that of the files.
            return torch.cat([self._output(block) for block in blocks_to_predict(self, source)])
        table = rows_to_predict(self, X, self.encoding_.names)
        further = FurtherInputs.of(tensors, len(table))
        features = self.encoding_.features(table)
        warn_of_unseen(self.encoding_.odd(features), table, stacklevel=4)
        with naming_inputs(self.encoding_, len(tensors)):
            return outputs(self.module_, torch.from_numpy(features), further)


def is_unconstrained(model: Any) -> bool:
    """Whether a model was trained for accuracy alone: without a penalty, and along no route that does without one."""
    return not getattr(model, "gamma_", None) and getattr(model, "route_", None) in (INDEPENDENCE, NO_ROUTE)
