"""Data augmentation, plain and along the graph [quinzan2024]: rows shown with another A, and the same target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from sklearn.utils import _safe_indexing as take
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ciplearn._core.arguments import flag, whole
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.rows import as_seed
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline, NodeColumns, outcome_columns
from ciplearn.baselines.fitted_models import ColumnRegression, TableEstimator
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.networks import network_of
from ciplearn.learning.settings import chosen_device

_MOST_COPIES = 10_000


@dataclass(frozen=True)
class Equation:
    """How one column follows from its causes: mean plus the row's own noise, or a draw from predicted levels."""

    places: Tensor
    causes: Tensor
    regression: ColumnRegression
    is_category: bool

    def residual(self, rows: Tensor) -> Tensor:  # (n, width) -> (n, width of the column)
        """What the causes leave unexplained in observed rows; nothing for a category, which is drawn."""
        observed = rows[:, self.places]
        return torch.zeros_like(observed) if self.is_category else observed - self.regression.mean(rows[:, self.causes])

    def value(self, rows: Tensor, noise: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The column's value where its causes have the values in ``rows``."""
        mean = self.regression.mean(rows[:, self.causes])
        if not self.is_category:
            return mean + noise[:, self.places]
        return one_hot(torch.multinomial(mean, 1, generator=generator)[:, 0], mean.shape[1]).to(mean.dtype)


@dataclass(frozen=True)
class ChangeOfA:
    """A drawn from the training rows, all of its columns together; descendants follow, everything else stays."""

    pool: Tensor  # (n, width of A): encoded A of the training rows, its marginal law
    places: Tensor  # where A stands in a row
    equations: Sequence[Equation] = ()  # of what follows A, each after its causes

    def __call__(self, rows: Tensor, noise: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return changed rows, (b, width), drawn from a generator; in a training from the one that it has seeded."""
        drawn = self.pool[torch.randint(len(self.pool), (len(rows),), device=rows.device, generator=generator)]
        changed = rows.index_copy(1, self.places, drawn)
        for equation in self.equations:
            changed = changed.index_copy(1, equation.places, equation.value(changed, noise, generator))
        return changed


class AugmentedNetwork(nn.Module):
    """A network that is trained on changed rows and asked about rows as they are.

    ``seen``: where the network's inputs stand in the rows that change.
    """

    def __init__(self, network: nn.Module, change: ChangeOfA, seen: Tensor) -> None:
        super().__init__()
        self.network, self.change, self.seen = network, change, seen

    def forward(self, inputs: Tensor, rows: Tensor, noise: Tensor) -> Tensor:
        """Evaluate the network, in training on rows with another A."""
        if not self.training:
            return self.network(inputs)
        with torch.no_grad():
            shown = self.change(rows, noise)[:, self.seen]
        return self.network(shown)


@dataclass(eq=False, repr=False)
class _Augmentation(Baseline):
    """A predictor that meets each row ``copies`` times per epoch, every time with another A and the same target.

    An estimator in place of the network, be it a Pipeline, meets the encoded rows of all copies at once, which takes
    their memory.
    """

    copies: int = 50

    @abstractmethod
    def _following(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        """Nodes that follow when A is drawn anew, each after its causes and with their names."""

    @abstractmethod
    def _noise(self, rows: Tensor, equations: Sequence[Equation]) -> Tensor:
        """What each training row keeps of its own when its columns follow."""

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        return columns.of(columns.inputs)

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        following = self._following(columns)
        nodes = {*columns.protected, *following, *chain(*following.values())} - {columns.outcome} if following else ()
        return tuple(dict.fromkeys((*self.inputs_, *columns.of(sorted(nodes), "causes"))))

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        copies = whole(self.copies, "copies", minimum=1, maximum=_MOST_COPIES)
        following = self._following(columns)
        outcome = outcome_columns(y, self.task_).set_index(table.index)
        # The outcome causes a descendant of A in anti-causal graphs, and keeps its value there.
        outcomes = tuple(outcome) if columns.outcome in {*chain(*following.values())} else ()
        whole_rows = pd.concat([table, outcome], axis=1)
        encoding = TableEncoding.of(whole_rows, (*self._read_by_fit(columns), *outcomes))
        rows = torch.from_numpy(encoding.features(whole_rows)).to(chosen_device(self.device))
        seed, equations = as_seed(self.random_state), list[Equation]()

        def places(names: Sequence[str]) -> Tensor:
            return torch.tensor(encoding.places(names), dtype=torch.int64, device=rows.device)

        for node, causes in following.items():
            names = columns.of([cause for cause in causes if cause != columns.outcome], "causes")
            names += outcomes if columns.outcome in causes else ()
            for column in columns.of([node]):
                target, given, labels = places([column]), places(names), encoding.only([column]).categories[0]
                number = seed + len(equations)
                learnt = self._regression(rows[:, given], rows[:, target], is_category=labels, seed=number)
                equations.append(Equation(target, given, learnt, labels))
        protected = places([name for name in columns.of(columns.protected) if name in encoding.names])
        change, noise = ChangeOfA(rows[:, protected], protected, equations), self._noise(rows, equations)
        seen = places(self.inputs_)
        if self.estimator is not None:
            generator = torch.Generator(rows.device).manual_seed(seed)
            shown = torch.cat([change(rows, noise.to(rows), generator)[:, seen] for _ in range(copies)]).cpu().numpy()
            again = np.tile(np.arange(len(table)), copies)
            weights = None if weights is None else take(weights, again)
            encoding = encoding.only(self.inputs_)
            return TableEstimator.fitted(self.estimator, shown, take(y, again), weights, seed=seed, encoding=encoding)

        def network() -> AugmentedNetwork:
            if self.module is not None:
                return AugmentedNetwork(network_of(self.module), change, seen)
            drawn = torch.Generator().manual_seed(seed)
            return AugmentedNetwork(model.fresh_perceptron(rows[:, seen], drawn), change, seen)

        model: CIPEstimator = self._network(
            module=network,
            # A pass over the rows is one copy of each: nothing is repeated in memory.
            epochs=whole(self.epochs, "epochs", minimum=1) * copies,
            patience=self.patience * copies,
        )
        model.fit(table[list(self.inputs_)], y, weights, tensors=[rows.cpu(), noise.cpu()])
        # What was learnt needs no augmentation any more.
        model.module_ = cast(nn.Module, model.module_.network)
        model.set_params(module=self.module, epochs=self.epochs, patience=self.patience)
        model.trained_with_ = model.get_params(deep=False)
        return model


@dataclass(eq=False, repr=False)
class Augmented(_Augmentation):
    """Trained on rows whose A is drawn anew from its marginal law, with all else and the target as they were.

    Needs no graph. A is drawn in every step, so ``copies`` cost time and no memory.

    Parameters
    ----------
    copies : int
        How often an epoch shows each row; how often an ``estimator`` meets it.

    Other parameters and attributes: see `Baseline`.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = baselines.Augmented(protected=["A"], copies=2, epochs=2)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    def _following(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        if not set(columns.protected) & set(columns.inputs):
            why = f"{as_set(columns.protected)} is not among the inputs {as_set(columns.inputs)}"
            raise InputError(f"There is nothing to augment: {why}; add it, or use NaivePredictor.")
        return {}

    def _noise(self, rows: Tensor, equations: Sequence[Equation]) -> Tensor:
        return torch.zeros(len(rows), 1)


@dataclass(eq=False, repr=False)
class CausallyAugmented(_Augmentation):
    """Trained on rows whose A is drawn anew and whose descendants of A follow, with the target as it was.

    A descendant that is a number becomes its regression on its observed causes plus the row's own residual, one that is
    a category is drawn from predicted probabilities. Regressions are networks like the predictor's, trained on the
    training rows for ``epochs`` epochs.

    Parameters
    ----------
    copies : int, as in `Augmented`
    keep_residuals : bool
        ``False`` leaves the residuals out, as the paper describes it.

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CausallyAugmented(graph=world.graph, outcome="Y", protected=["A"], copies=2, epochs=2)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    keep_residuals: bool = True

    def _following(self, columns: NodeColumns) -> dict[str, tuple[str, ...]]:
        return {node: columns.causes(node) for node in columns.responding()}

    def _noise(self, rows: Tensor, equations: Sequence[Equation]) -> Tensor:
        noise = torch.zeros_like(rows)
        for equation in equations if flag(self.keep_residuals, "keep_residuals") else ():
            noise[:, equation.places] = equation.residual(rows)
        return noise
