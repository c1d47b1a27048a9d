"""The heuristics: data augmentation, and data augmentation that follows the graph [quinzan2024]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd
import torch
from torch import Tensor, nn

from ciplearn._core.errors import InputError
from ciplearn._core.numbers import whole
from ciplearn._core.wording import as_set
from ciplearn.baselines.augmentation import AugmentedNetwork, Change, DrawnProtected, Equation, PropagatedChange
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns
from ciplearn.baselines.layout import Layout
from ciplearn.baselines.outcome import outcome_columns
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.networks import network_of
from ciplearn.learning.settings import chosen_device


@dataclass(eq=False, repr=False)
class _Augmentation(Baseline):
    """A network that meets each row ``copies`` times an epoch, every time with another A and the same target."""

    copies: int = 50

    @abstractmethod
    def _layout(self, table: pd.DataFrame, columns: NodeColumns) -> Layout:
        """The columns that change takes part in."""

    @abstractmethod
    def _change(self, rows: Tensor, layout: Layout, columns: NodeColumns) -> tuple[Change, Tensor]:
        """The change, and the noise of the training rows that it keeps."""

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        return columns.of(columns.inputs)

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> CIPEstimator:
        copies = whole(self.copies, "copies", minimum=1)
        known = pd.concat([table, outcome_columns(y, self.task_).set_index(table.index)], axis=1)
        layout = self._layout(known, columns)
        rows = layout.rows(known).to(chosen_device(self.device))
        change, noise = self._change(rows, layout, columns)
        seen = torch.tensor(layout.places(self.inputs_), device=rows.device)
        model: CIPEstimator = self._network(
            module=lambda: AugmentedNetwork(self._plain_network(model, len(seen)), change, seen),
            # A pass over the rows is one copy of each: nothing is repeated in memory.
            epochs=whole(self.epochs, "epochs", minimum=1) * copies,
            patience=self.patience * copies,
        )
        model.fit(table[list(self.inputs_)], y, weights, tensors=[rows.cpu(), noise.cpu()])
        # What was learnt needs no augmentation any more.
        model.module_ = cast(nn.Module, model.module_.network)
        return model.set_params(module=self.module, epochs=self.epochs, patience=self.patience)

    def _views(self, table: pd.DataFrame) -> Iterable[pd.DataFrame]:
        yield table

    def _plain_network(self, model: CIPEstimator, n_inputs: int) -> nn.Module:
        if self.module is None:
            return model._fresh_perceptron(n_inputs, torch.Generator().manual_seed(self._seed()))
        return network_of(self.module)

    def _drawn(self, rows: Tensor, layout: Layout, columns: NodeColumns) -> DrawnProtected:
        places = torch.tensor(layout.places(columns.of(columns.protected)), device=rows.device)
        return DrawnProtected(rows[:, places], places)


@dataclass(eq=False, repr=False)
class Augmented(_Augmentation):
    """Trained on rows whose A is drawn anew from its marginal law, with all else and the target as they were.

    Needs no graph. A is drawn in every step, so ``copies`` cost time and no memory.

    Parameters
    ----------
    copies : int
        How often an epoch shows each row.

    Other parameters and attributes: see `Baseline`.
    """

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        return self.inputs_

    def _layout(self, table: pd.DataFrame, columns: NodeColumns) -> Layout:
        unseen = [node for node in columns.protected if node not in columns.inputs]
        if len(unseen) == len(columns.protected):
            raise InputError(
                f"There is nothing to augment: {as_set(unseen)} is not among the inputs {as_set(columns.inputs)}; add "
                f"it, or use NaivePredictor."
            )
        return Layout.of(table, (*self.inputs_, *columns.of(columns.protected)))

    def _change(self, rows: Tensor, layout: Layout, columns: NodeColumns) -> tuple[Change, Tensor]:
        return self._drawn(rows, layout, columns), torch.zeros(len(rows), 1)


@dataclass(eq=False, repr=False)
class CausallyAugmented(_Augmentation):
    """Trained on rows whose A is drawn anew and whose descendants of A follow, with the target as it was.

    A descendant that is a number becomes its regression on its observed causes plus the row's own residual, one that is
    a category is drawn from predicted probabilities. Regressions are networks like the predictor's, trained on the
    training rows for ``epochs`` epochs.

    Parameters
    ----------
    copies : int
        How often an epoch shows each row.
    keep_residuals : bool
        ``False`` leaves the residuals out, as the paper describes it.

    Other parameters and attributes: see `Baseline`; the graph is needed.
    """

    keep_residuals: bool = True

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        causes = [cause for node in columns.responding() for cause in columns.causes(node) if cause != columns.outcome]
        nodes = (*columns.protected, *columns.responding(), *causes)
        return tuple(dict.fromkeys((*self.inputs_, *columns.of(nodes, "causes"))))

    def _layout(self, table: pd.DataFrame, columns: NodeColumns) -> Layout:
        used = (*self._read_by_fit(columns), *(self._outcomes(table.columns, columns)))
        return Layout.of(table, used)

    def _change(self, rows: Tensor, layout: Layout, columns: NodeColumns) -> tuple[Change, Tensor]:
        seed = self._seed()
        equations: list[Equation] = []
        noise = torch.zeros_like(rows)
        for node in columns.responding():
            causes = columns.causes(node)
            names = columns.of([cause for cause in causes if cause != columns.outcome], "causes")
            if columns.outcome in causes:
                names += self._outcomes(layout.encoding.names, columns)
            for column in columns.of([node]):
                equation = self._equation(rows, layout, column, names, seed + len(equations))
                if self.keep_residuals:
                    noise[:, equation.places] = equation.residual(rows)
                equations.append(equation)
        return PropagatedChange(self._drawn(rows, layout, columns), equations), noise

    def _equation(self, rows: Tensor, layout: Layout, column: str, causes: tuple[str, ...], seed: int) -> Equation:
        places, given = (torch.tensor(layout.places(names), device=rows.device) for names in ([column], causes))
        is_category = layout.is_category(column)
        learnt = self._regressions().regression(rows[:, given], rows[:, places], is_category=is_category, seed=seed)
        return Equation(places, given, learnt, is_category)

    def _outcomes(self, names: Iterable[str], columns: NodeColumns) -> tuple[str, ...]:
        """The outcome's columns; it causes a descendant of A in anti-causal graphs, and keeps its value there."""
        return tuple(name for name in names if name not in columns.names)
