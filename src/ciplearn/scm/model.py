"""`StructuralCausalModel`: equations along a graph, and what would have been under other values."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.arguments import mapping_of, of_kind, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_generator
from ciplearn.causal import CausalGraph
from ciplearn.scm.equation import Additive, EquationMechanism
from ciplearn.scm.kinds import (
    Array,
    Categories,
    Kind,
    Scalar,
    Units,
    plain,
    present_nodes,
    read_nodes,
    refuse_strangers,
)
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.multinomial import GumbelMax
from ciplearn.scm.noise import as_law, draw_hidden, is_distribution
from ciplearn.scm.report import Finding

# Candidates per row when latent parents are inferred by weighting.
DEFAULT_CANDIDATES = 1000

# A column of more numbers fills terabytes.
_MOST_ROWS = 2**40


class StructuralCausalModel:
    """V = f_V(pa(V), U_V) for every node V of a graph, with independent noises U_V.

    Parameters
    ----------
    graph : CausalGraph
        Latent nodes have equations like all others; they just never appear in a frame. A bidirected edge is a latent
        cause without an equation, so draw that cause as a latent node instead.
    equations : mapping from node to callable or Mechanism
        ``f(p, u)`` with the parents' values by name and the node's noise, for whole columns at a time; or `Additive`,
        or a mechanism that brings its own noise, such as `GumbelMax`.
    noise : mapping from node to law
        A frozen scipy distribution, a function ``(n, generator) -> array``, or a number for a node without noise.
    inverses : mapping from node to callable, optional
        ``g(p, value)``, the noise behind a value, where there is one. Not needed where the equation is linear in its
        noise: that is found out.
    kinds : mapping from node to Kind, optional
        `Vector` for a node of several numbers, in columns ``A[0]``, ``A[1]``, ...; `Categories` for labels. Every other
        node is one number.

    Examples
    --------
    >>> import pandas as pd
    >>> from scipy.stats import norm
    >>> from ciplearn import CausalGraph, StructuralCausalModel
    >>> equations = {"A": lambda p, u: u, "Y": lambda p, u: 2 * p["A"] + u}
    >>> scm = StructuralCausalModel(CausalGraph.from_edges("A -> Y"), equations, noise={"A": norm(), "Y": norm()})
    >>> scm.counterfactual(pd.DataFrame({"A": [1.0], "Y": [2.5]}), {"A": 3.0})
         A    Y
    0  3.0  6.5
    """

    model_based = False  # whether the equations were estimated from data, as those of an `EstimatedModel`
    misfits: tuple[Finding, ...] = ()  # what speaks against them
    ambiguities: tuple[Finding, ...] = ()
    joint_noise: tuple[Any, ...] = ()  # noises that are not independent, drawn together

    def __init__(
        self,
        graph: CausalGraph,
        equations: Mapping[str, Callable[..., Any] | Mechanism],
        noise: Mapping[str, Any] | None = None,
        inverses: Mapping[str, Callable[..., Any]] | None = None,
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        self.graph = graph
        parts = {"equations": equations, "noise": noise, "inverses": inverses, "kinds": kinds}
        self.mechanisms, self.kinds = _assembled(graph, **{name: mapping_of(one, name) for name, one in parts.items()})
        self.actions: dict[str, Action] = {}
        self._order = graph.topological_order()
        self._parents = {node: graph.parents(node) for node in graph.nodes}

    @property
    def trustworthy(self) -> bool:
        """Whether no data speak against the equations: true of a user's, see `EstimatedModel` for others."""
        return not (self.misfits or self.ambiguities)

    def sample(self, n: int, random_state: RandomState = None) -> pd.DataFrame:
        """Draw n rows of the observed nodes."""
        return self.frame(self.sample_units(n, random_state))

    def sample_units(self, n: int, random_state: RandomState = None) -> Units:
        """Draw n rows and keep their noise: counterfactuals of these are exact whatever the equations are."""
        n = whole(n, "n", minimum=0, maximum=_MOST_ROWS)
        generator = as_generator(random_state)
        # Every node's noise is drawn, in one order, so that a seed means the same units with and without an action.
        noise = {node: self.mechanisms[node].draw(n, generator) for node in self._order}
        for joint in self.joint_noise:
            noise |= joint.draw(n, generator)
        return self.predict_units(Units({}, noise, pd.RangeIndex(n)), generator)

    def counterfactual(
        self,
        rows: pd.DataFrame | Units,
        interventions: Mapping[str, Any],
        *,
        n_draws: int = 1,
        n_candidates: int = DEFAULT_CANDIDATES,
        random_state: RandomState = 0,
    ) -> pd.DataFrame:
        """Say what the rows would have been, had ``interventions`` been made: abduction, action, prediction.

        Parameters
        ----------
        rows : DataFrame or Units
            Observed nodes as columns; a node may be left out if nothing present descends from it. Units of
            `sample_units` or `abduct` come with their noise.
        interventions : mapping from node to value
            See `do`.
        n_draws : int
            How many draws to return for each row, where the noise is not determined by the row. With more than one the
            index has a second level ``draw``; average predictions, not rows, over it.
        n_candidates : int
            How many candidates to weigh per row where a latent parent has to be inferred.
        random_state : int, Generator, RandomState or None
            For those draws, and for actions that draw; noise that the row determines is the same under every seed. Each
            row of a table draws a noise of its own. Units were drawn once, by `abduct`, so ``units =
            scm.abduct(rows); scm.counterfactual(units.take(numbers), {"A": values})`` is one person under many values
            of A, and faster.
        """
        generator = as_generator(random_state)
        world = self.do(interventions)
        changing = self.graph.descendants(interventions) - set(interventions) if interventions else frozenset()
        units = self.abduct(rows, nodes=changing, n_draws=n_draws, n_candidates=n_candidates, random_state=generator)
        return world.predict(units, generator)

    def abduct(
        self,
        rows: pd.DataFrame | Units,
        *,
        nodes: Iterable[str] | None = None,
        n_draws: int = 1,
        n_candidates: int = DEFAULT_CANDIDATES,
        random_state: RandomState = 0,
    ) -> Units:
        """Abduction: find the noise behind the rows, or draw it from its law given the rows.

        ``nodes``: those whose noise is wanted, all that the rows hold by default; those that an action changes are
        enough. For the others see `counterfactual`. Noise that can neither be recovered nor drawn is an `InputError`.
        """
        n_draws = whole(n_draws, "n_draws", minimum=1, maximum=_MOST_ROWS)
        n_candidates = whole(n_candidates, "n_candidates", minimum=2, maximum=_MOST_ROWS)
        if isinstance(rows, Units):
            return rows if n_draws == 1 else rows.take(np.repeat(np.arange(len(rows.index)), n_draws))
        present = present_nodes(rows, self.graph, self.kinds, "rows")
        refuse_strangers(rows, self.graph, self.kinds, "rows")
        observed = read_nodes(rows, self.kinds, present)
        wanted = (set(present) if nodes is None else set(self.graph.known(nodes)) & set(present)) - set(self.actions)
        if not len(rows):
            nothing = {node: self.mechanisms[node].draw(0, as_generator(random_state)) for node in wanted}
            return Units(observed, nothing, rows.index, n_draws)
        generator = as_generator(random_state)
        values = {node: np.repeat(array, n_draws, axis=0) if n_draws > 1 else array for node, array in observed.items()}
        noise: dict[str, Array] = {}
        exact, effective = True, None
        if any(parent not in observed for node in wanted for parent in self._parents[node]):
            hidden = draw_hidden(self.graph, self.mechanisms, observed, n_draws, n_candidates, generator)
            values |= hidden.values
            noise |= hidden.noise
            exact, effective = False, hidden.effective
        for node in [node for node in self._order if node in wanted and node not in noise]:
            mechanism, recovered = self.mechanisms[node], None
            if all(parent in observed for parent in self._parents[node]):
                recovered = mechanism.recover(self._parent_values(node, observed), observed[node])
                exact = exact and recovered is not None
            if recovered is not None:
                noise[node] = np.repeat(recovered, n_draws, axis=0) if n_draws > 1 else recovered
            else:
                noise[node] = mechanism.posterior(self._parent_values(node, values), values[node], generator)
        return Units(values, noise, rows.index, n_draws, exact, effective)

    def do(self, interventions: Mapping[str, Any]) -> Self:
        """Action: return this model with the equations of some nodes replaced.

        ``interventions`` map a node to a constant; one value per row, a Series by the labels of the rows; a function of
        the parents ``lambda p: ...``, which also finds the node's own natural value under its name, so that ``lambda p:
        p["A"] + 1`` is a shift; a function ``lambda p, generator: ...``; or a frozen scipy distribution.
        """
        if not isinstance(interventions, Mapping):
            why = f"interventions must map nodes to values, got {type(interventions).__name__}"
            raise InputTypeError(f"{why}; pass {{'A': 1.0}}, say.")
        world = copy.copy(self)
        nodes = self.graph.known(interventions, "interventions")
        world.actions = self.actions | {node: Action(node, self.kinds[node], interventions[node]) for node in nodes}
        return world

    def predict(self, units: Units, random_state: RandomState = 0) -> pd.DataFrame:
        """Prediction: send the units' noise through the equations; nodes that no action reaches keep their values."""
        return self.frame(self.predict_units(units, random_state))

    def predict_units(self, units: Units, random_state: RandomState = 0) -> Units:
        """Do as `predict` does, with latent nodes and noise still there."""
        of_kind(units, Units, "units", "for rows use counterfactual(rows, interventions)")
        generator = as_generator(random_state)
        values: dict[str, Array] = {}
        changed: set[str] = set()
        for node in self._order:
            action, parents = self.actions.get(node), self._parent_values(node, values)
            touched = not changed.isdisjoint(self._parents[node])
            natural = units.values.get(node)
            if (touched or natural is None) and (action is None or action.is_function):
                if node in units.noise:
                    natural = self.mechanisms[node].evaluate(parents, units.noise[node])
                elif natural is not None:
                    why = f"These units lack the noise of {node}, which this action changes"
                    raise InputError(f"{why}; abduct with nodes=None, or name {node} among them.")
            if action is not None:
                # Units that were sampled have no labels of their own, by which values could be matched.
                index = units.index if units.values else None
                values[node] = action.values(units.n, units.draws, parents, natural, generator, index)
            elif natural is not None:
                values[node] = natural
            if action is not None or touched:
                changed.add(node)
        return Units(values, units.noise, units.index, units.draws, units.exact, units.effective_draws)

    def between(self, protected: Iterable[str], inputs: Iterable[str]) -> tuple[str, ...]:
        """Nodes where imagined values differ: what the protected ones act on and columns of the inputs come from."""
        graph, acting, read = self.graph, set(protected), set(inputs)
        seen = [node for node in graph.observed if not read.isdisjoint(self.columns([node]))]
        differing = (graph.descendants(sorted(acting)) - acting) & graph.ancestors(seen)
        return tuple(node for node in graph.topological_order() if node in differing)

    def digest_parts(self) -> tuple[Any, ...]:
        """What tells it apart from other models: its graph, and what it makes of the same noise."""
        return self.graph, self.sample_units(100, random_state=0).values

    def frame(self, units: Units) -> pd.DataFrame:
        """Return the observed nodes of some units as a frame."""
        values = units.values
        columns = [self.kinds[node].write(values[node], node) for node in self.graph.observed if node in values]
        table = pd.DataFrame({name: column for part in columns for name, column in part.items()}, units.row_index())
        if self.model_based:
            table.attrs["model_based"] = True
        return table

    def columns(self, nodes: Iterable[str]) -> list[str]:
        """Return the frame columns of some nodes: more than one for a vector."""
        return [column for node in self.graph.known(nodes) for column in self.kinds[node].columns(node)]

    def _parent_values(self, node: str, values: Mapping[str, Array]) -> dict[str, Array]:
        return {parent: values[parent] for parent in self._parents[node] if parent in values}

    def __repr__(self) -> str:
        what = "estimated, model-based" if self.model_based else "known equations"
        done = f", do({', '.join(self.actions)})" if self.actions else ""
        return f"{type(self).__name__}({len(self.graph.nodes)} nodes, {what}{done})"


def _assembled(
    graph: Any, equations: dict[str, Any], noise: dict[str, Any], inverses: dict[str, Any], kinds: dict[str, Any]
) -> tuple[dict[str, Mechanism], dict[str, Kind]]:
    """Return mechanisms and kinds by node, or say what is missing."""
    of_kind(graph, CausalGraph, "graph", "build one with CausalGraph.from_edges(...)").dag()
    if graph.bidirected:
        a, b = graph.bidirected[0]
        raise InputError(
            f"{a} ↔ {b} is a shared cause without an equation; draw it as a latent node, for example "
            f"from_edges('U -> {a}, U -> {b}', latent=['U']), and give U an equation and noise."
        )
    for role, mapping in (("equations", equations), ("noise", noise), ("inverses", inverses), ("kinds", kinds)):
        graph.known(mapping, role)
    if missing := [node for node in graph.nodes if node not in equations]:
        why = f"{missing[0]} has no equation ({len(missing)} of {len(graph.nodes)} nodes lack one)"
        raise InputError(f"{why}; add equations={{{missing[0]!r}: lambda p, u: ...}}, also for nodes without parents.")
    settled: dict[str, Kind] = {}
    for node in graph.nodes:
        declared, equation = kinds.get(node), equations[node]
        if declared is not None and not isinstance(declared, Kind):
            why = f"The kind of {node} must be Scalar(), Vector(size) or Categories(levels), got {declared!r}"
            raise InputTypeError(f"{why}; pass one.")
        brought = equation.kind if isinstance(equation, GumbelMax) else None
        if brought is not None and isinstance(declared, Categories) and declared != brought:
            why = f"{node} has levels {declared.levels!r} in kinds but {brought.levels!r} in its equation"
            raise InputError(f"{why}; drop the entry in kinds.")
        settled[node] = brought or declared or Scalar()
    mechanisms = {
        node: _mechanism(node, equations[node], noise.get(node), inverses.get(node), kind)
        for node, kind in settled.items()
    }
    return mechanisms, settled


def _mechanism(node: str, equation: Any, noise: Any, inverse: Any, kind: Kind) -> Mechanism:
    if isinstance(equation, Mechanism):
        if noise is not None or inverse is not None:
            why = f"{node} is a {type(equation).__name__}, which brings its own noise"
            raise InputError(f"{why}; drop its noise and inverse.")
        return replace(equation, node=node) if isinstance(equation, GumbelMax) else equation
    if not callable(equation):
        why = f"The equation of {node} must be a function of (p, u), got {equation!r}"
        raise InputTypeError(f"{why}; pass for example lambda p, u: u.")
    if noise is None:
        raise InputError(f"{node} has no noise law; add noise={{{node!r}: scipy.stats.norm(0, 1)}}, or 0 for none.")
    if inverse is not None and not callable(inverse):
        raise InputTypeError(f"The inverse of {node} must be a function of (p, value), got {inverse!r}; pass one.")
    inverse = equation.inverse if isinstance(equation, Additive) and inverse is None else inverse
    return EquationMechanism(node, equation, as_law(noise, node, kind), inverse, kind)


@dataclass(frozen=True)
class Action:
    """A node's new value, in any of the ways that `StructuralCausalModel.do` takes."""

    node: str
    kind: Kind
    value: Any

    @property
    def is_function(self) -> bool:
        """Whether the value may depend on what the node would have been."""
        return callable(self.value) and not is_distribution(self.value)

    def values(
        self, n: int, draws: int, parents: Parents, natural: Array | None, generator: Generator, index: pd.Index | None
    ) -> Array:
        """Return the values of n units, ``draws`` per row; a Series is matched with the ``index`` of the rows."""
        if is_distribution(self.value):
            return self.kind.rows_of(as_law(self.value, self.node, self.kind).draw(n, generator), n, self.node)
        if not self.is_function:
            rows = self.kind.rows_of(plain(self._matched(index), self.kind), n // draws, self.node)
            return np.repeat(rows, draws, axis=0) if draws > 1 else rows
        seen = dict(parents) if natural is None else {**parents, self.node: natural}
        value = self.value(seen, generator) if _arity(self.value) == 2 else self.value(seen)
        return self.kind.rows_of(plain(value, self.kind), n, self.node)

    def _matched(self, index: pd.Index | None) -> Any:
        """The value, its rows in the order of ``index``."""
        value = self.value
        if not isinstance(value, pd.DataFrame | pd.Series) or index is None or len(value) != len(index):
            return value
        # Labels that several rows share, as in a bootstrap sample, do not tell them apart: there the order counts.
        if index.has_duplicates or value.index.equals(index):
            return value
        order = value.index.get_indexer(index) if value.index.is_unique else np.array([-1])
        if (order < 0).any():
            raise InputError(
                f"The values for {self.node} do not have the labels of the rows: their index is "
                f"{list(value.index[:3])}... and that of the rows {list(index[:3])}...; pass values with the rows' "
                "index, or in the rows' order with to_numpy()."
            )
        return value.iloc[order]


def _arity(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(needed) > 2:
        raise InputTypeError(
            f"An intervention function takes the parents, or the parents and a generator, but {len(needed)} arguments "
            "are needed; write lambda p: ... or lambda p, generator: ..."
        )
    return len(needed)
