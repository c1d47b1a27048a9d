"""The joint law of discrete nodes, confounded components, and the laws of their response functions.

The noise of a discrete node does one thing: it picks the function from its parents' values to its own, its response
function. A causal model is thus a law of response functions [balke1994]. Nodes that share an unobserved cause draw
theirs together, others independently: the law is a product over the confounded components of the graph. What a
component does given its parents outside is known from data, as a product over its nodes in topological order
[tian2002], so that all that data say about the law p of a component C is linear:

    Σ { p(r) : under r the nodes of C take the values v where their parents outside have the values w } = Q(v | w).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linprog

from ciplearn._core.columns import check_cells, checked_table
from ciplearn._core.errors import InputError, InputTypeError, NumericalError
from ciplearn._core.wording import as_set
from ciplearn.causal import CausalGraph
from ciplearn.causal.names import nearest

MOST_VARIABLES = 100_000  # variables of a program that still takes seconds
Values = tuple[int, ...]  # one level number per node
Response = tuple[str, Values, int]  # value of a node where its parents have these values


@dataclass(frozen=True)
class DiscreteLaw:
    """Cells with their probabilities; levels are numbered in their natural order."""

    levels: Mapping[str, tuple[Any, ...]]  # the levels of each node
    cells: Mapping[str, np.ndarray]  # the level of each node in every cell
    weights: np.ndarray  # its probability

    @classmethod
    def read(cls, probabilities: pd.DataFrame | pd.Series, nodes: Sequence[str]) -> DiscreteLaw:
        """Read a frame of rows, or a Series of joint probabilities indexed by the nodes."""
        if isinstance(probabilities, pd.DataFrame):
            probabilities = _shares(probabilities, nodes)
        elif not isinstance(probabilities, pd.Series):
            raise InputTypeError(
                "probabilities must be a pandas frame of rows or a Series of joint probabilities, but "
                f"{type(probabilities).__name__} was received; convert it."
            )
        values = _checked(probabilities, nodes)
        # Levels count even where their probability is 0: a question may set them.
        cells = probabilities.index.to_frame(index=False)
        numbered = {node: pd.factorize(cells[node], sort=True) for node in nodes}
        levels = {node: tuple(held) for node, (_, held) in numbered.items()}
        return cls(levels, {node: codes for node, (codes, _) in numbered.items()}, values / values.sum())

    def number(self, node: str, level: Any, role: str) -> int:
        """Return the number of a level, or say which levels there are."""
        levels = self.levels[node]
        if level in levels:
            return levels.index(level)
        shown = ", ".join(map(str, levels[:8])) + (", ..." if len(levels) > 8 else "")
        why = f"{role} gives {node!r} the level {level!r}, which the probabilities do not have"
        raise InputError(f"{why}; its levels are {shown}.")

    @cached_property
    def _masses(self) -> dict[tuple[str, ...], dict[Values, float]]:
        return {}

    def size(self, node: str) -> int:
        """The number of levels of a node."""
        return len(self.levels[node])

    def mass(self, values: Mapping[str, int]) -> float:
        """P(nodes = values); 1 for no nodes at all."""
        nodes = tuple(sorted(values))
        if not nodes:
            return 1.0
        if nodes not in self._masses:
            groups = pd.Series(self.weights).groupby([self.cells[node] for node in nodes]).sum()
            keys = groups.index if len(nodes) > 1 else [(key,) for key in groups.index]
            self._masses[nodes] = {tuple(key): float(mass) for key, mass in zip(keys, groups, strict=True)}
        return self._masses[nodes].get(tuple(values[node] for node in nodes), 0.0)


def _shares(rows: pd.DataFrame, nodes: Sequence[str]) -> pd.Series:
    _has_all(checked_table(rows, "probabilities").columns, nodes, "column")
    kept = rows[list(nodes)]
    if not len(kept):
        raise InputError("probabilities has no rows; pass at least one.")
    for name in nodes:
        check_cells(kept[name])
    missing = kept.columns[kept.isna().any()]
    if len(missing):
        count = int(kept[missing[0]].isna().sum())
        raise InputError(f"{missing[0]!r} is missing in {count} of {len(kept)} rows; drop or impute them.")
    return kept.value_counts(sort=False, normalize=True)


def _checked(law: pd.Series, nodes: Sequence[str]) -> np.ndarray:
    if None in law.index.names:
        raise InputError("The index of probabilities has no names; name its levels after the nodes with rename_axis().")
    _has_all(law.index.names, nodes, "index level")
    values = law.to_numpy(dtype=float)
    if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1.0) > 1e-6:
        raise InputError(
            f"Probabilities must be at least 0 and add up to 1, but they add up to {values.sum():.6g} and the smallest "
            f"is {values.min(initial=0.0):.3g}; divide by their sum, or pass the rows themselves."
        )
    if not law.index.is_unique:
        raise InputError("The index of probabilities names a cell twice; add such entries up with groupby().sum().")
    return values


def _has_all(names: Iterable[Any], nodes: Sequence[str], kind: str) -> None:
    held = [str(name) for name in names]
    absent = next((node for node in nodes if node not in held), None)
    if absent is not None:
        raise InputError(
            f"probabilities has no {kind} for the observed node {absent!r}; {nearest(absent, held, f'{kind}s')} "
            "If nobody has observed it, mark the node as latent."
        )


@dataclass(frozen=True)
class ObservedGraph:
    """What a graph says about its observed nodes: their parents, and which of them share a cause.

    A latent node with parents hands them on to its children and becomes a root: what it carried, its children could
    have computed themselves. Nodes stand in topological order.
    """

    parents: Mapping[str, tuple[str, ...]]
    causes: tuple[frozenset[str], ...]  # the children of each unobserved root that has several

    @classmethod
    def of(cls, graph: CausalGraph) -> ObservedGraph:
        """Hand the parents of latent nodes on, and read off what is left."""
        dag = graph.dag()
        hidden = graph.numbers(graph.latent) | set(range(len(graph.nodes), dag.size))
        order = dag.topological_order() or []
        above = [set(parents) for parents in dag.parents]
        for latent in (node for node in order if node in hidden):
            for node in range(dag.size):
                if latent in above[node]:
                    above[node] |= above[latent]
            above[latent] = set()
        seen = [node for node in order if node not in hidden]
        causes = {frozenset(graph.names(node for node in seen if latent in above[node])) for latent in hidden}
        kept = [cause for cause in causes if len(cause) > 1 and not any(cause < other for other in causes)]
        parents = {graph.nodes[node]: tuple(graph.nodes[p] for p in seen if p in above[node]) for node in seen}
        return cls(parents, tuple(sorted(kept, key=sorted)))

    def restricted(self, nodes: Set[str]) -> ObservedGraph:
        """Return the graph on a set of nodes that holds all their parents."""
        causes = (cause & nodes for cause in self.causes)
        return ObservedGraph(
            {node: parents for node, parents in self.parents.items() if node in nodes},
            tuple(cause for cause in causes if len(cause) > 1),
        )

    def components(self) -> list[tuple[str, ...]]:
        """Return the confounded components, each in topological order."""
        components: dict[tuple[str, ...], None] = {}
        for node in self.parents:
            together = self.confounded_with(node, set(self.parents))
            components[tuple(other for other in self.parents if other in together)] = None
        return list(components)

    def confounded_with(self, node: str, among: Set[str]) -> set[str]:
        """Return the component of `node` in the graph on the nodes `among`."""
        return _reached({node}, lambda here: set().union(*(cause & among for cause in self.causes if here in cause)))

    def ancestors(self, nodes: Set[str], avoiding: Set[str] = frozenset()) -> set[str]:
        """Return `nodes` and all nodes with a directed path into them that does not run through `avoiding`."""
        return _reached(nodes, lambda node: set(self.parents[node]) - avoiding)

    @cached_property
    def before(self) -> dict[str, tuple[str, ...]]:
        """What each node is conditioned on: its component among itself and earlier nodes, and all their parents."""
        before: dict[str, tuple[str, ...]] = {}
        earlier: set[str] = set()
        for node in self.parents:
            together = self.confounded_with(node, earlier | {node})
            kin = {parent for member in together for parent in self.parents[member]} | together
            before[node] = tuple(other for other in self.parents if other in kin and other != node)
            earlier.add(node)
        return before


def _reached(start: Set[str], step: Callable[[str], Set[str]]) -> set[str]:
    reached, stack = set(start), list(start)
    while stack:
        new = step(stack.pop()) - reached
        reached |= new
        stack += new
    return reached


@dataclass(frozen=True)
class Component:
    """A confounded component and the law of its response functions, as the unknowns of a linear program."""

    nodes: tuple[str, ...]  # the nodes in topological order
    graph: ObservedGraph
    law: DiscreteLaw
    # the values of its parents at which a response function is looked at; all others do not matter. What stands in
    # different blocks is never asked about together, so that a law for each block is all that is needed: the unknowns
    # are the combinations of responses within each block
    blocks: tuple[Mapping[str, Sequence[Values]], ...]

    @property
    def is_one_cause(self) -> bool:
        """Whether one unobserved cause reaches all nodes, so that any law of their response functions is possible."""
        return len(self.nodes) == 1 or any(cause.issuperset(self.nodes) for cause in self.graph.causes)

    @cached_property
    def configurations(self) -> dict[str, list[Values]]:
        """Where each node is looked at, over all blocks."""
        return {node: [at for block in self.blocks for at in block[node]] for node in self.nodes}

    @cached_property
    def _block_sizes(self) -> list[int]:
        return [prod(self.law.size(node) ** len(block[node]) for node in self.nodes) for block in self.blocks]

    @cached_property
    def size(self) -> int:
        """The number of unknowns."""
        size = sum(self._block_sizes)
        if size > MOST_VARIABLES:
            why = f"The program for {as_set(self.nodes)} has {size:.3g} variables, more than {MOST_VARIABLES}"
            raise InputError(f"{why}; merge levels, or leave out parents and latent causes that you can argue away.")
        return size

    @cached_property
    def responses(self) -> dict[str, np.ndarray]:  # node -> (size, configurations)
        """The value of each node at each configuration for each unknown; -1 at configurations of other blocks."""
        values = {node: np.full((self.size, len(self.configurations[node])), -1) for node in self.nodes}
        row, column = 0, dict.fromkeys(self.nodes, 0)
        for block, size in zip(self.blocks, self._block_sizes, strict=True):
            shapes = {node: (self.law.size(node),) * len(block[node]) for node in self.nodes}
            picks = np.unravel_index(np.arange(size), [prod(shape) for shape in shapes.values()])
            for (node, shape), pick in zip(shapes.items(), picks, strict=True):
                functions = np.array(list(product(*map(range, shape))), dtype=int).reshape(prod(shape), len(shape))
                values[node][row : row + size, column[node] : column[node] + len(shape)] = functions[pick]
                column[node] += len(shape)
            row += size
        return values

    @cached_property
    def _column(self) -> dict[tuple[str, Values], int]:
        return {(n, at): number for n in self.nodes for number, at in enumerate(self.configurations[n])}

    def agreeing(self, responses: Sequence[Response]) -> np.ndarray:  # (size,), 0 or 1
        """Mark the unknowns that give all these responses, which lie in one block."""
        marked = np.ones(self.size, dtype=bool)
        for node, at, value in responses:
            marked &= self.responses[node][:, self._column[node, at]] == value
        return marked.astype(float)

    @cached_property
    def constraints(self) -> tuple[np.ndarray, np.ndarray]:  # (rows, size), (rows,)
        """All that the probabilities say about the law: matrix and right-hand side; the first row adds up a block."""
        block = np.repeat(np.arange(len(self.blocks)), self._block_sizes)
        rows, right = [(block == number).astype(float) for number in range(len(self.blocks))], [1.0] * len(self.blocks)
        told: dict[tuple[Response, ...], float] = {}
        for responses, probability in self._known_probabilities():
            told.setdefault(responses, probability)
        rows += [self.agreeing(responses) for responses in told]
        return np.array(rows), np.array([*right, *told.values()])

    def refuse_contradiction(self) -> None:
        """Raise where no law fits: find the law that misses the known probabilities least."""
        matrix, right = self.constraints
        slack = sparse.eye_array(len(right))
        costs = np.repeat([0.0, 1.0], [matrix.shape[1], 2 * len(right)])
        both = sparse.hstack([sparse.csr_array(matrix), slack, -slack]).tocsr()
        nearest_law = linprog(costs, A_eq=both, b_eq=right, method="highs")
        if nearest_law.status == 0 and nearest_law.fun > 1e-6:
            raise InputError(
                f"No causal model with this graph has these probabilities: those of {as_set(self.nodes)} given their "
                f"causes are off by {nearest_law.fun:.3g} in sum; add the edge or the common cause that is missing, or "
                "pass more rows."
            )

    def _known_probabilities(self) -> Iterator[tuple[tuple[Response, ...], float]]:
        outside = sorted({p for node in self.nodes for p in self.graph.parents[node]} - set(self.nodes))
        needed = {node: set(self.configurations[node]) for node in self.nodes}
        for values in product(*(range(self.law.size(node)) for node in (*outside, *self.nodes))):
            at = dict(zip((*outside, *self.nodes), values, strict=True))
            responses: list[Response] = []
            probability = 1.0
            for node in self.nodes:
                parents = tuple(at[parent] for parent in self.graph.parents[node])
                factor = conditional(self.law, self.graph, node, at)
                # Where the parents' values never occur together, data say nothing from here on.
                if parents not in needed[node] or factor is None:
                    break
                responses.append((node, parents, at[node]))
                probability *= factor
                if probability == 0:
                    break
            if responses:
                yield tuple(responses), probability


def minimiser(costs: np.ndarray, matrix: np.ndarray | sparse.csr_array, right: np.ndarray) -> np.ndarray:
    """Return the probabilities p of least costs·p with matrix p = right."""
    program = linprog(costs, A_eq=matrix, b_eq=right, bounds=(0, 1), method="highs")
    if program.status != 0:
        why = f"The linear program of {len(costs)} variables was not solved ({program.message.strip()})"
        raise NumericalError(f"{why}; pass probabilities with more digits, or merge rare levels.")
    return np.clip(program.x, 0.0, 1.0)


def conditional(law: DiscreteLaw, graph: ObservedGraph, node: str, values: Mapping[str, int]) -> float | None:
    """P(node | what stands before it) at these values; None where they have probability 0."""
    given = {name: values[name] for name in graph.before[node]}
    whole = law.mass(given)
    return law.mass({**given, node: values[node]}) / whole if whole > 0 else None


def conditionals(law: DiscreteLaw, graph: ObservedGraph, names: Sequence[str], table: np.ndarray) -> np.ndarray:
    """P(last name | the names before it) at each row of levels, looked up once per distinct row; NaN where unknown."""
    distinct, pick = np.unique(table, axis=0, return_inverse=True)
    factors = [conditional(law, graph, names[-1], dict(zip(names, row, strict=True))) for row in distinct.tolist()]
    return np.array(factors, dtype=float)[pick.reshape(-1)]
