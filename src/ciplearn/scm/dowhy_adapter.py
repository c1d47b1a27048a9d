"""Models of ``dowhy.gcm`` as structural causal models.

dowhy itself is never imported: what is read is the interface of a fitted ``InvertibleStructuralCausalModel``, that is
its ``graph`` and, of ``causal_mechanism(node)``, ``draw_samples`` for nodes without parents, and ``evaluate``,
``estimate_noise`` and ``draw_noise_samples`` for all others, whose parents stand in sorted order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from ciplearn._core.errors import InputTypeError
from ciplearn.causal import CausalGraph
from ciplearn.scm.estimated_model import EstimatedModel
from ciplearn.scm.kinds import Array, Scalar
from ciplearn.scm.mechanism import Mechanism, Parents
from ciplearn.scm.report import FitReport

_NOTES = ("The mechanisms were fitted by dowhy.gcm; ask its evaluate_causal_model how well.",)


def from_dowhy(model: Any, n_rows: int = 0) -> EstimatedModel:
    """Return a fitted ``dowhy.gcm.InvertibleStructuralCausalModel`` as a model of this library.

    Parameters
    ----------
    model
        After ``dowhy.gcm.fit``; every node is one number.
    n_rows : int
        How many rows it was fitted to, for the report.

    Examples
    --------
    >>> from ciplearn.errors import CiplearnError
    >>> from ciplearn.scm import from_dowhy
    >>> try:
    ...     from_dowhy("not a model of dowhy.gcm")
    ... except CiplearnError as refused:
    ...     print(type(refused).__name__)
    InputTypeError
    """
    if not hasattr(model, "causal_mechanism") or not hasattr(model, "graph"):
        raise InputTypeError(
            f"model must be a fitted dowhy.gcm InvertibleStructuralCausalModel, got {type(model).__name__}; fit one "
            "with dowhy.gcm.fit(model, data)."
        )
    # dowhy keeps mechanisms as attributes of nodes, which a causal graph has no use for.
    bare = type(model.graph)()
    bare.add_nodes_from(model.graph.nodes)
    bare.add_edges_from(model.graph.edges)
    graph = CausalGraph.from_networkx(bare)
    mechanisms: dict[str, Mechanism] = {}
    for node in graph.nodes:
        parents = tuple(sorted(graph.parents(node)))
        inner = model.causal_mechanism(node)
        needed = ("evaluate", "estimate_noise", "draw_noise_samples") if parents else ("draw_samples",)
        lacking = [name for name in needed if not hasattr(inner, name)]
        if lacking:
            raise InputTypeError(
                f"The mechanism of {node} cannot be inverted: {type(inner).__name__} has no {lacking[0]}; assign an "
                "invertible mechanism such as an additive noise model, or estimate this model with fit_scm."
            )
        mechanisms[node] = _DowhyMechanism(inner, parents)
    return EstimatedModel(graph, mechanisms, {node: Scalar() for node in graph.nodes}, FitReport((), n_rows, _NOTES))


@dataclass(frozen=True)
class _DowhyMechanism(Mechanism):
    """One node's mechanism; arrays are columns on dowhy's side."""

    inner: Any
    parents: tuple[str, ...]

    def draw(self, n: int, generator: Generator) -> Array:
        sampler = self.inner.draw_noise_samples if self.parents else self.inner.draw_samples
        # dowhy draws from numpy's global state: lend it a seeded one and put the old one back.
        state = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(int(generator.integers(2**32)))  # noqa: NPY002
            return _column(sampler(n))
        finally:
            np.random.set_state(state)  # noqa: NPY002

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        if not self.parents or len(noise) == 0:
            return noise
        return _column(self.inner.evaluate(self._matrix(parents), noise[:, None]))

    def recover(self, parents: Parents, value: Array) -> Array:
        if not self.parents or len(value) == 0:
            return value
        return _column(self.inner.estimate_noise(value[:, None], self._matrix(parents)))

    def _matrix(self, parents: Parents) -> Array:
        return np.stack([parents[name] for name in self.parents], axis=1)


def _column(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64).reshape(len(array))
