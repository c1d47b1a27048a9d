"""PSCF: path-specific counterfactual fairness [chiappa2019].

Each descendant of A has a latent variable of its own; rows are shown as they would be, had A a baseline value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, one_hot

from ciplearn._core.arguments import non_negative, several, whole
from ciplearn._core.columns import form_groups, takes_few_values
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import InputError
from ciplearn._core.rows import as_seed, row_blocks
from ciplearn.baselines.base import Baseline, NodeColumns
from ciplearn.estimators.networks import Perceptron
from ciplearn.kernels import Gaussian
from ciplearn.kernels.kernels import mixed_kernel
from ciplearn.learning import Objective, TrainingRows, TrainingSettings, train
from ciplearn.learning.settings import chosen_device
from ciplearn.penalties import HSIC, MMD, Penalty

_MOST = 10_000  # draws, latent variables and units of a network, each at most: more end in hours or beyond memory

# On columns scaled to [0, 1]: a decoder that is surer than the least models rounding, not the column. The first is sure
# enough that what the causes leave unexplained is worth a place in the latent.
_LEAST_LOG_SCALE, _FIRST_LOG_SCALE = -4.0, -3.0


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
        self.fair_rows_ = FairRows(
            corrections=self._corrections(table, rows, columns, unfair),
            baseline=self._baseline_row(table, columns).double().to(chosen_device(self.device)),
            fixed=self.encoding_.places(fixed),
            seed=as_seed(self.random_state),
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
    ) -> tuple[CorrectedNode, ...]:
        protected = TableEncoding.of(table, columns.of(columns.protected))
        penalty, right = latent_penalty(table, protected), torch.from_numpy(protected.numbers(table))
        device, corrections, changed = chosen_device(self.device), list[CorrectedNode](), set[str]()
        for node in columns.responding():
            causes = self._causes(node, columns)
            unfairly = [cause for cause in causes if cause in columns.protected and unfair.hold(cause, node)]
            if not unfairly and not changed.intersection(causes):
                continue
            changed.add(node)
            places, given, replaced = (self.encoding_.places(columns.of(names)) for names in ([node], causes, unfairly))
            training = TrainingRows((rows[:, given], rows[:, places]), target=rows[:, places], right=right).to(device)
            settings = TrainingSettings(
                gamma=self.gamma,
                epochs=self.epochs,
                batch_size=self.batch_size,
                learning_rate=self.latent_learning_rate,
                weight_decay=self.weight_decay,
                seed=as_seed(self.random_state) + len(corrections),
            )
            widths, encoding = (len(given), self.n_latents, self.latent_hidden), self.encoding_.only(columns.of([node]))
            generator = torch.Generator().manual_seed(settings.seed)
            latent = LatentNode(*widths, self.divergence_weight, encoding, generator).to(device)
            latent.draws = torch.Generator(device).manual_seed(settings.seed)
            operator = penalty.prepare(training.right)
            train(latent, training, NegativeEvidence(), settings, operator, verbose=bool(self.verbose))
            latent.draws = None
            corrections.append(CorrectedNode(places, given, replaced, latent.double()))
        return tuple(corrections)

    def _baseline_row(self, table: pd.DataFrame, columns: NodeColumns) -> Tensor:  # (width,)
        """A row with each protected column at what was chosen, else at its mean or commonest value."""
        names, chosen = columns.of(columns.protected, "protected"), {} if self.baseline is None else self.baseline
        if not isinstance(chosen, Mapping):
            why = f"baseline must map protected columns to values, got {chosen!r}"
            raise InputError(f"{why}; pass {{{names[0]!r}: ...}}.")
        if strange := [name for name in chosen if name not in names]:
            why = f"baseline names {strange[0]!r}, which is not protected"
            raise InputError(f"{why}; the columns are {', '.join(names)}.")
        for name, value in chosen.items():
            if not pd.api.types.is_scalar(value) or pd.isna(value):
                why = f"baseline must give {name!r} one value, got {str(value)[:80]!r}"
                raise InputError(f"{why}; pass a value that occurs.")
        # Numbers that take few values count as groups: theirs is the commonest value.
        held = {name: table[name] for name in names}
        usual = {name: c.mode().iloc[0] if takes_few_values(c) else float(c.mean()) for name, c in held.items()}
        row = self._encoded(table.iloc[:1].assign(**{**usual, **chosen}))[0]
        for name in chosen:
            if any(self.encoding_.only([name]).categories) and row[self.encoding_.places([name])].sum() == 0:
                why = f"baseline names {chosen[name]!r} for {name!r}, which no training row has"
                raise InputError(f"{why}; pass a value that occurs.")
        return row

    def _encoded(self, table: pd.DataFrame) -> Tensor:  # (n, width)
        return torch.from_numpy(self.encoding_.features(table))

    def _shown(self, rows: Tensor) -> pd.DataFrame:
        seen = rows[:, self.seen_].cpu().numpy()
        return pd.DataFrame(seen, columns=[f"input {number}" for number in range(seen.shape[1])])


def latent_penalty(table: pd.DataFrame, protected: TableEncoding) -> Penalty:
    """What makes latents independent of A: MMD where A has groups, HSIC where it is a number or many values."""
    # Latents are near N(0, I), and squared distances are averaged over columns.
    if form_groups(table, protected.names):
        return MMD(Gaussian(1.0))
    return HSIC(Gaussian(1.0), mixed_kernel(Gaussian("median"), protected.categories))


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
        directed = () if columns.graph is None else columns.graph.directed
        out = sorted(edge for edge in directed if edge[0] in columns.protected)
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


class LatentNode(nn.Module):
    """V = decoder(causes, H), H ~ N(0, I), with a Gaussian posterior q(H | causes, V): a variational autoencoder.

    Numbers have a Gaussian likelihood of learnt scale, categories that of their level. ``n_causes``, ``n_latents``,
    ``n_hidden``: widths of the encoded causes, of H, and of the hidden layers. ``divergence_weight``: of the divergence
    of posterior from prior in the bound; below 1 it pays to keep in H what tells rows apart. ``encoding``: of the
    node's columns. ``generator``: of the first weights. ``draws``: of H in training, on the network's device.
    """

    draws: torch.Generator | None = None

    def __init__(
        self,
        n_causes: int,
        n_latents: int,
        n_hidden: int,
        divergence_weight: float,
        encoding: TableEncoding,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        width = encoding.width
        self.parts = tuple(zip(encoding.slices, encoding.categories, strict=True))
        self.divergence_weight = divergence_weight
        self.encoder = Perceptron(n_causes + width, (n_hidden,), 2 * n_latents, generator=generator)
        self.decoder = Perceptron(n_causes + n_latents, (n_hidden,), width, generator=generator)
        self.log_scale = nn.Parameter(torch.full((width,), _FIRST_LOG_SCALE))

    def forward(self, causes: Tensor, value: Tensor) -> Tensor:  # (b, c), (b, w) -> (b, 1 + n_latents)
        """Return the negative evidence bound of each row, and beside it a draw from its posterior."""
        mean, scale = self.posterior(causes, value)
        latent = mean
        if self.training:
            noise = torch.randn(scale.shape, generator=self.draws, dtype=scale.dtype, device=scale.device)
            latent = mean + scale * noise
        divergence = (mean.square() + scale.square() - 1).sum(dim=1) / 2 - scale.log().sum(dim=1)
        misfit = self._misfit(self.decoder(torch.cat([causes, latent], dim=1)), value)
        return torch.cat([(misfit + self.divergence_weight * divergence)[:, None], latent], dim=1)

    def posterior(self, causes: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale of H for rows."""
        mean, log_scale = self.encoder(torch.cat([causes, value], dim=1)).chunk(2, dim=1)
        return mean, log_scale.clamp(-10, 10).exp()

    def decoded(self, causes: Tensor, latent: Tensor, gumbel: Tensor) -> Tensor:  # (b, c), (b, d), (w,) -> (b, w)
        """The node's value under these causes: mean of a number, for a category the level that the noise selects."""
        output = self.decoder(torch.cat([causes, latent], dim=1))
        value = output.clone()
        for places, is_category in self.parts:
            if is_category:
                level = (output[:, places] + gumbel[places]).argmax(dim=1)
                value[:, places] = one_hot(level, places.stop - places.start).to(value.dtype)
        return value

    def _misfit(self, output: Tensor, value: Tensor) -> Tensor:  # (b, w), (b, w) -> (b,)
        total = output.new_zeros(len(output))
        for places, is_category in self.parts:
            decoded, seen = output[:, places], value[:, places]
            if is_category:
                total = total - (seen * log_softmax(decoded, dim=1)).sum(dim=1)
            else:
                log_scale = self.log_scale[places].clamp_min(_LEAST_LOG_SCALE)
                total = total + (((decoded - seen) / log_scale.exp()).square() / 2 + log_scale).sum(dim=1)
        return total


@dataclass(frozen=True)
class NegativeEvidence(Objective):
    """The bound that `LatentNode` returns; the penalty sees the draw of H."""

    def losses(self, output: Tensor, target: Tensor) -> Tensor:
        """Negative evidence bound of each row."""
        return output[:, 0]

    def prediction(self, output: Tensor) -> Tensor:
        """The draws of H."""
        return output[:, 1:]

    def columns(self, target: Tensor) -> None:
        """The bound and the draws of H, however many."""


@dataclass(frozen=True)
class CorrectedNode:
    """How one node follows its causes."""

    places: list[int]  # where the node stands in an encoded row
    causes: list[int]  # and its causes
    replaced: list[int]  # those places of protected causes that act along unfair edges
    node: LatentNode  # in double precision

    def posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:  # (n, width) -> (n, d), (n, d)
        """Mean and scale of the node's latent given observed rows."""
        with torch.no_grad():
            return self.node.posterior(rows[:, self.causes], rows[:, self.places])

    def value(self, rows: Tensor, baseline: Tensor, latent: Tensor, gumbel: Tensor) -> Tensor:
        """The node's value with its causes as in ``rows`` and A at the baseline where its effect is unfair."""
        causes = rows[:, self.causes]
        causes[:, [self.causes.index(column) for column in self.replaced]] = baseline[self.replaced]
        with torch.no_grad():
            return self.node.decoded(causes, latent, gumbel)


@dataclass(frozen=True)
class FairRows:
    """Draws of corrected rows."""

    corrections: Sequence[CorrectedNode]  # each after its causes
    baseline: Tensor  # (width,): an encoded row with A at its baseline; only the places of A matter
    fixed: list[int]  # places of protected variables that the predictor is shown at the baseline
    seed: int

    def draws(self, rows: Tensor, n_draws: int) -> Iterator[Tensor]:  # (n, width) -> n_draws times (n, width)
        """Draw latents from their posteriors and yield the corrected rows; one draw where no latent is drawn."""
        rows = rows.to(self.baseline)
        posteriors = [correction.posterior(rows) for correction in self.corrections]
        generator = torch.Generator().manual_seed(self.seed)
        blocks = row_blocks(len(rows)) if rows.device.type == "cpu" else [slice(None)]
        for _ in range(n_draws if self.corrections else 1):
            noises = []
            for correction, (mean, _) in zip(self.corrections, posteriors, strict=True):
                # The same noise for every row: a row's answer does not depend on the rows it is asked with.
                noise = torch.randn(mean.shape[1], generator=generator, dtype=torch.float64).to(rows)
                uniform = torch.rand(len(correction.places), generator=generator, dtype=torch.float64)
                noises.append((noise, -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-12))).to(rows)))
            changed = rows.clone()
            for block in blocks:
                some = changed[block]  # a view
                for correction, (mean, scale), (noise, gumbel) in zip(
                    self.corrections, posteriors, noises, strict=True
                ):
                    value = correction.value(some, self.baseline, mean[block] + scale[block] * noise, gumbel)
                    # The places of a column stand together: they are written as slices, not one by one.
                    for column, _ in correction.node.parts:
                        first = correction.places[column.start]
                        some[:, first : first + column.stop - column.start] = value[:, column]
            changed[:, self.fixed] = self.baseline[self.fixed]
            yield changed
