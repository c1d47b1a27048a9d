"""PSCF: path-specific counterfactual fairness [chiappa2019]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from ciplearn._core.choices import several
from ciplearn._core.columns import TableEncoding, form_groups, takes_few_values
from ciplearn._core.errors import InputError
from ciplearn._core.numbers import non_negative, whole
from ciplearn.baselines.base import Baseline
from ciplearn.baselines.columns import NodeColumns
from ciplearn.baselines.latents import Correction, FairRows, LatentNode, NegativeEvidence
from ciplearn.causal import CausalGraph
from ciplearn.kernels import Gaussian
from ciplearn.kernels.mixed import mixed_kernel
from ciplearn.learning import TrainingRows, TrainingSettings, train
from ciplearn.learning.settings import chosen_device
from ciplearn.penalties import HSIC, MMD, Penalty

# Latents are near N(0, I), and squared distances are averaged over columns.
_LATENT_KERNEL = Gaussian(1.0)

# Draws, latent variables and units of a network, each at most: more end in hours or beyond memory.
_MOST = 10_000


@dataclass(eq=False, repr=False)
class PSCF(Baseline):
    """A predictor that is asked about the row as it would be, had A a baseline value along unfair paths.

    Each descendant V of A that the inputs need has its own latent H_V with V = f_V(causes, H_V), learnt as a
    variational autoencoder whose posterior is made independent of A by a penalty. The predictor is trained on rows as
    they are. To predict, H_V is drawn from its posterior given the row, A is put at the baseline along unfair paths,
    descendants follow through f_V, and the answers are averaged over draws. How little the answer follows A then
    depends on how little the posteriors tell about it: this is not exact, unlike `CF1`.

    Parameters
    ----------
    unfair_edges : sequence of (protected, node) pairs, optional
        The first edges of unfair paths; by default every edge out of A, so that all paths are unfair.
    baseline : mapping of protected column to value, optional
        By default the mean of a number, the commonest value of a category or of a number that takes few values.
    gamma : float
        Weight of the penalty on the latents: the maximum mean discrepancy between the groups of A, each mean divided by
        its group's size, or HSIC where A has no groups, such as an age.
    n_latents, latent_hidden : int
        Widths of each H_V and of its encoder's and decoder's hidden layer.
    divergence_weight : float
        Weight of the divergence in the autoencoders' bound; at 1 latents tend to stay empty, and a corrected row then
        holds nothing of the row's own.
    latent_learning_rate : float
        Of the autoencoders; epochs and batch size are the predictor's.
    n_draws : int
        Draws of the latents that a prediction averages over, the same for every row.

    Other parameters and attributes: see `Baseline`; the graph is needed.

    Examples
    --------
    >>> from ciplearn import baselines, datasets
    >>> world = datasets.first_synthetic()
    >>> table = world.sample(100, random_state=0)
    >>> model = baselines.PSCF(graph=world.graph, outcome="Y", protected=["A"], n_draws=2, epochs=2, random_state=0)
    >>> model.fit(table.drop(columns="Y"), table["Y"]).predict(table).shape
    (100,)
    """

    unfair_edges: Sequence[tuple[str, str]] | None = None
    baseline: Mapping[str, Any] | None = None
    gamma: float = 10.0
    n_latents: int = 10
    latent_hidden: int = 20
    divergence_weight: float = 0.1
    latent_learning_rate: float = 1e-2
    n_draws: int = 50

    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        causes = [cause for node in columns.responding() for cause in self._causes(node, columns)]
        nodes = (*columns.inputs, *columns.protected, *columns.responding(), *causes)
        return tuple(dict.fromkeys(columns.of(nodes, "causes")))

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        for name in ("n_draws", "n_latents", "latent_hidden"):
            whole(getattr(self, name), name, minimum=1, maximum=_MOST)
        non_negative(self.divergence_weight, "divergence_weight")
        unfair = UnfairEdges.of(self.unfair_edges, columns)
        self.seen_ = self.encoding_.places(columns.of(columns.inputs))
        rows = self._encoded(table)
        fixed = columns.of(node for node in columns.protected if unfair.reaches_outcome(node))
        device = chosen_device(self.device)
        self.fair_rows_ = FairRows(
            corrections=self._corrections(table, rows, columns, unfair),
            baseline=self._baseline(table, columns).double().to(device),
            fixed=self.encoding_.places(fixed),
            seed=self._seed(),
        )
        return self._trained(self._shown(rows), y, weights)

    def _views(self, table: pd.DataFrame) -> Iterable[pd.DataFrame]:
        for rows in self.fair_rows_.draws(self._encoded(table), self.n_draws):
            yield self._shown(rows)

    def _causes(self, node: str, columns: NodeColumns) -> tuple[str, ...]:
        # The outcome is not known when the latent is inferred: the latent takes in what it has done.
        return tuple(cause for cause in columns.causes(node) if cause != columns.outcome)

    def _corrections(
        self, table: pd.DataFrame, rows: Tensor, columns: NodeColumns, unfair: UnfairEdges
    ) -> tuple[Correction, ...]:
        protected = TableEncoding.of(table, columns.of(columns.protected))
        penalty = latent_penalty(table, protected)
        right = torch.from_numpy(protected.numbers(table))
        found: list[Correction] = []
        changed: set[str] = set()
        for node in columns.responding():
            causes = self._causes(node, columns)
            unfairly = [cause for cause in causes if cause in columns.protected and unfair.hold(cause, node)]
            if not unfairly and not changed.intersection(causes):
                continue
            changed.add(node)
            latent = self._latent_node(rows, right, columns.of(causes), columns.of([node]), penalty, len(found))
            own, given, replaced = (self.encoding_.places(columns.of(names)) for names in ([node], causes, unfairly))
            found.append(Correction(own, given, replaced, latent))
        return tuple(found)

    def _latent_node(
        self,
        rows: Tensor,
        right: Tensor,
        causes: tuple[str, ...],
        own: tuple[str, ...],
        penalty: Penalty,
        number: int,
    ) -> LatentNode:
        encoding, device = self.encoding_, chosen_device(self.device)
        settings = TrainingSettings(
            gamma=self.gamma,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.latent_learning_rate,
            weight_decay=self.weight_decay,
            seed=self._seed() + number,
        )
        value, given = rows[:, encoding.places(own)], rows[:, encoding.places(causes)]
        widths = given.shape[1], self.n_latents, self.latent_hidden
        generator = torch.Generator().manual_seed(settings.seed)
        node = LatentNode(*widths, self.divergence_weight, encoding.only(own), generator).to(device)
        node.draws = torch.Generator(device).manual_seed(settings.seed)
        trained = TrainingRows(inputs=(given, value), target=value, right=right).to(device)
        operator = penalty.prepare(trained.right)
        train(node, trained, NegativeEvidence(), settings, operator, verbose=bool(self.verbose))
        node.draws = None
        return node.double()

    def _baseline(self, table: pd.DataFrame, columns: NodeColumns) -> Tensor:  # (width,)
        chosen = baseline_row(table, columns, self.baseline)
        row = self._encoded(table.iloc[:1].assign(**{name: chosen[name].to_numpy() for name in chosen.columns}))[0]
        for name in chosen.columns:
            if any(self.encoding_.only([name]).categories) and row[self.encoding_.places([name])].sum() == 0:
                raise InputError(
                    f"baseline names {chosen[name].iloc[0]!r} for {name!r}, which no training row has; pass a value "
                    f"that occurs."
                )
        return row

    def _encoded(self, table: pd.DataFrame) -> Tensor:  # (n, width)
        return torch.from_numpy(self.encoding_.features(table))

    def _shown(self, rows: Tensor) -> pd.DataFrame:
        seen = rows[:, self.seen_].cpu().numpy()
        return pd.DataFrame(seen, columns=[f"input {place}" for place in range(seen.shape[1])])


def latent_penalty(table: pd.DataFrame, protected: TableEncoding) -> Penalty:
    """What makes latents independent of A: MMD where A has groups, HSIC where it is a number or many values."""
    if form_groups(table, protected.names):
        return MMD(_LATENT_KERNEL)
    return HSIC(_LATENT_KERNEL, mixed_kernel(Gaussian("median"), protected.categories))


@dataclass(frozen=True)
class UnfairEdges:
    """A path out of A is unfair if its first edge is; None means every edge out of A."""

    edges: frozenset[tuple[str, str]] | None
    columns: NodeColumns

    @classmethod
    def of(cls, edges: Any, columns: NodeColumns) -> UnfairEdges:
        """Check edges against the graph."""
        if edges is None:
            return cls(None, columns)
        known = set(columns.graph.directed) if isinstance(columns.graph, CausalGraph) else set()
        out = sorted(edge for edge in known if edge[0] in columns.protected)
        listed = [tuple(several(edge, "An edge of unfair_edges")) for edge in several(edges, "unfair_edges")]
        for edge in listed:
            if edge not in out:
                raise InputError(f"unfair_edges names {edge!r}, which is no edge out of A; those are {out}.")
        return cls(frozenset(listed), columns)

    def hold(self, cause: str, node: str) -> bool:
        """Whether a protected cause acts on a node along an unfair edge, or through a latent node at the end of one."""
        graph = self.columns.graph
        if self.edges is None or graph is None or (cause, node) in self.edges:
            return True
        if (cause, node) in graph.directed:
            return False
        starts = [first for start, first in self.edges if start == cause and first in graph.latent]
        return any(node in graph.descendants(first) for first in starts)

    def reaches_outcome(self, protected: str) -> bool:
        """Whether the predictor may not read this variable itself: it may only along a fair edge to the outcome."""
        graph, outcome = self.columns.graph, self.columns.outcome
        fair = graph is not None and self.edges is not None and (protected, outcome) in graph.directed
        return not fair or (protected, outcome) in (self.edges or ())


def baseline_row(table: pd.DataFrame, columns: NodeColumns, chosen: Mapping[str, Any] | None) -> pd.DataFrame:
    """Return one row with the baseline of each protected column: what was chosen, else its mean or commonest value.

    Numbers that take few values count as groups: theirs is the commonest value.
    """
    names = columns.of(columns.protected, "protected")
    if chosen is not None and not isinstance(chosen, Mapping):
        raise InputError(f"baseline must map protected columns to values, got {chosen!r}; pass {{{names[0]!r}: ...}}.")
    strange = [name for name in chosen or {} if name not in names]
    if strange:
        raise InputError(f"baseline names {strange[0]!r}, which is not protected; the columns are {', '.join(names)}.")
    values = {
        name: (chosen or {}).get(
            name, table[name].mode().iloc[0] if takes_few_values(table[name]) else float(table[name].mean())
        )
        for name in names
    }
    return pd.DataFrame({name: [value] for name, value in values.items()})
