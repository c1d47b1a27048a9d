"""Data augmentation, plain and along the graph [quinzan2024]: rows shown with another A, and the same target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from sklearn.utils import _safe_indexing as take
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ciplearn._core.columns import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.flags import flag
from ciplearn._core.numbers import whole
from ciplearn._core.wording import as_set
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns, outcome_columns
from ciplearn.baselines.regression import ColumnRegression
from ciplearn.baselines.table_estimator import TableEstimator
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.networks import network_of
from ciplearn.learning.settings import chosen_device

_MOST_COPIES = 10_000


class Change(ABC):
    """What becomes of encoded rows when A is drawn anew."""

    @abstractmethod
    def __call__(
        self, rows: Tensor, noise: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:  # (b, width), (b, width) -> (b, width)
        """Return changed rows, drawn from a generator; inside a training from the one that training has seeded."""


@dataclass(frozen=True)
class DrawnProtected(Change):
    """A drawn from the training rows, all of its columns together; everything else as it was."""

    pool: Tensor  # (n, width of A): encoded A of the training rows: its marginal law
    places: Tensor  # where A stands in a row

    def __call__(self, rows: Tensor, noise: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw A."""
        drawn = self.pool[torch.randint(len(self.pool), (len(rows),), device=rows.device, generator=generator)]
        return rows.index_copy(1, self.places, drawn)


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
        drawn = torch.multinomial(mean, 1, generator=generator)[:, 0]
        return one_hot(drawn, mean.shape[1]).to(mean.dtype)


@dataclass(frozen=True)
class PropagatedChange(Change):
    """A change of A that its descendants follow, equation by equation, each after its causes."""

    first: Change
    equations: Sequence[Equation]

    def __call__(self, rows: Tensor, noise: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Change A, then what A changes."""
        changed = self.first(rows, noise, generator)
        for equation in self.equations:
            changed = changed.index_copy(1, equation.places, equation.value(changed, noise, generator))
        return changed


class AugmentedNetwork(nn.Module):
    """A network that is trained on changed rows and asked about rows as they are.

    ``seen``: where the network's inputs stand in the rows that change.
    """

    def __init__(self, network: nn.Module, change: Change, seen: Tensor) -> None:
        super().__init__()
        self.network = network
        self.change = change
        self.seen = seen

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
    def _taking_part(self, known: Iterable[str], columns: NodeColumns) -> tuple[str, ...]:
        """The columns that the change takes part in; ``known`` has the outcome too."""

    @abstractmethod
    def _change(self, rows: Tensor, encoding: TableEncoding, columns: NodeColumns) -> tuple[Change, Tensor]:
        """The change, and the noise of the training rows that it keeps."""

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        return columns.of(columns.inputs)

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        copies = whole(self.copies, "copies", minimum=1, maximum=_MOST_COPIES)
        known = pd.concat([table, outcome_columns(y, self.task_).set_index(table.index)], axis=1)
        encoding = TableEncoding.of(known, self._taking_part(known.columns, columns))
        rows = torch.from_numpy(encoding.features(known)).to(chosen_device(self.device))
        change, noise = self._change(rows, encoding, columns)
        seen = torch.tensor(encoding.places(self.inputs_), device=rows.device)
        if self.estimator is not None:
            generator = torch.Generator(rows.device).manual_seed(self._seed())
            shown = torch.cat([change(rows, noise.to(rows), generator)[:, seen] for _ in range(copies)]).cpu().numpy()
            again = np.tile(np.arange(len(table)), copies)
            weights = None if weights is None else take(weights, again)
            return TableEstimator.fitted_on_rows(
                self.estimator, shown, take(y, again), weights, encoding.only(self.inputs_), seed=self._seed()
            )
        model: CIPEstimator = self._network(
            module=lambda: AugmentedNetwork(self._plain_network(model, rows[:, seen]), change, seen),
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

    def _plain_network(self, model: CIPEstimator, inputs: Tensor) -> nn.Module:
        if self.module is None:
            return model.fresh_perceptron(inputs, torch.Generator().manual_seed(self._seed()))
        return network_of(self.module)

    def _drawn(self, rows: Tensor, encoding: TableEncoding, columns: NodeColumns) -> DrawnProtected:
        places = torch.tensor(encoding.places(columns.of(columns.protected)), device=rows.device)
        return DrawnProtected(rows[:, places], places)


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
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.Augmented(graph=world.graph, outcome="Y", protected=["A"], copies=2, epochs=2, random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    def _taking_part(self, known: Iterable[str], columns: NodeColumns) -> tuple[str, ...]:
        unseen = [node for node in columns.protected if node not in columns.inputs]
        if len(unseen) == len(columns.protected):
            raise InputError(
                f"There is nothing to augment: {as_set(unseen)} is not among the inputs {as_set(columns.inputs)}; add "
                f"it, or use NaivePredictor."
            )
        return (*self.inputs_, *columns.of(columns.protected))

    def _change(self, rows: Tensor, encoding: TableEncoding, columns: NodeColumns) -> tuple[Change, Tensor]:
        return self._drawn(rows, encoding, columns), torch.zeros(len(rows), 1)


@dataclass(eq=False, repr=False)
class CausallyAugmented(_Augmentation):
    """Trained on rows whose A is drawn anew and whose descendants of A follow, with the target as it was.

    A descendant that is a number becomes its regression on its observed causes plus the row's own residual, one that is
    a category is drawn from predicted probabilities. Regressions are networks like the predictor's, trained on the
    training rows for ``epochs`` epochs.

    Parameters
    ----------
    copies : int
        How often an epoch shows each row; how often an ``estimator`` meets it.
    keep_residuals : bool
        ``False`` leaves the residuals out, as the paper describes it.

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.CausallyAugmented(
    ...     graph=world.graph, outcome="Y", protected=["A"], copies=2, epochs=2, random_state=0
    ... )
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    keep_residuals: bool = True

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        causes = [cause for node in columns.responding() for cause in columns.causes(node) if cause != columns.outcome]
        nodes = (*columns.protected, *columns.responding(), *causes)
        return tuple(dict.fromkeys((*self.inputs_, *columns.of(nodes, "causes"))))

    def _taking_part(self, known: Iterable[str], columns: NodeColumns) -> tuple[str, ...]:
        return (*self._read_by_fit(columns), *self._outcomes(known, columns))

    def _change(self, rows: Tensor, encoding: TableEncoding, columns: NodeColumns) -> tuple[Change, Tensor]:
        seed = self._seed()
        keep_residuals = flag(self.keep_residuals, "keep_residuals")
        equations: list[Equation] = []
        noise = torch.zeros_like(rows)
        for node in columns.responding():
            causes = columns.causes(node)
            names = columns.of([cause for cause in causes if cause != columns.outcome], "causes")
            if columns.outcome in causes:
                names += self._outcomes(encoding.names, columns)
            for column in columns.of([node]):
                equation = self._equation(rows, encoding, column, names, seed + len(equations))
                if keep_residuals:
                    noise[:, equation.places] = equation.residual(rows)
                equations.append(equation)
        return PropagatedChange(self._drawn(rows, encoding, columns), equations), noise

    def _equation(
        self, rows: Tensor, encoding: TableEncoding, column: str, causes: tuple[str, ...], seed: int
    ) -> Equation:
        places, given = (torch.tensor(encoding.places(names), device=rows.device) for names in ([column], causes))
        (is_category,) = encoding.only([column]).categories
        learnt = self._regressions().regression(rows[:, given], rows[:, places], is_category=is_category, seed=seed)
        return Equation(places, given, learnt, is_category)

    def _outcomes(self, names: Iterable[str], columns: NodeColumns) -> tuple[str, ...]:
        """The outcome's columns; it causes a descendant of A in anti-causal graphs, and keeps its value there."""
        return tuple(name for name in names if name not in columns.names)
