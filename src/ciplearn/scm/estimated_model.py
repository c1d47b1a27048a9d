"""A structural causal model whose mechanisms were estimated."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm.choice import Choice
from ciplearn.scm.estimate import Memory
from ciplearn.scm.kinds import Kind
from ciplearn.scm.mechanism import Mechanism
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.report import FitReport
from ciplearn.scm.roots import JointNoise
from ciplearn.scm.saving import read_parts, write_parts


class EstimatedModel(StructuralCausalModel):
    """A structural causal model whose mechanisms were estimated; all it says is model-based.

    Attributes
    ----------
    report : FitReport
        How well each mechanism fits; print it.
    misfits : tuple of Finding
        Nodes whose mechanism does not fit, each with a sentence (``node``, ``sentence``).
    ambiguities : tuple of Finding
        Nodes of which data leave open what would have been: the noise is known up to its sign only, or mechanisms that
        fit about equally imagine different values.
    trustworthy : bool
        Whether there are neither misfits nor ambiguities. It says that the data do not speak against the mechanisms,
        not that the graph is right.
    choices : mapping from node to Choice
        The mechanisms that were tried for each node, fitted to four fifths of the rows, at most 20 000, with their
        held-out losses.
    memory : dict
        What was fitted, for ``fit_scm(..., like=this)``.
    seed : int
        Of the fit.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> scm = fit_scm(world.graph, world.sample(400, random_state=0), random_state=0)
    >>> scm.misfits, scm.ambiguities
    ((), ())
    >>> scm.sample(3, random_state=0).shape
    (3, 6)
    """

    model_based = True
    report: FitReport

    def __init__(
        self,
        graph: CausalGraph,
        mechanisms: Mapping[str, Mechanism],
        kinds: Mapping[str, Kind],
        report: FitReport,
        choices: Mapping[str, Choice] | None = None,
        joint_noise: tuple[JointNoise, ...] = (),
        memory: Memory | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, mechanisms, kinds=kinds)
        self.report = report
        self.misfits, self.ambiguities = report.misfits, report.ambiguities
        self.choices = dict(choices or {})
        self.joint_noise = joint_noise
        self.memory: Memory = {} if memory is None else memory
        self.seed = seed

    def variants(self, node: str) -> dict[str, Self]:
        """Return this model with each other mechanism of a node that predicts held-out rows about as well.

        The range of an answer over them is how far it hangs on the choice of the mechanism.

        Returns
        -------
        dict from the name of the mechanism to the model
        """
        if node not in self.graph.nodes:
            self.graph.known([node])
        if node not in self.choices:
            return {}
        return {other.label: self.replaced({node: other.mechanism}) for other in self.choices[node].equals}

    def ties(self, nodes: Iterable[str]) -> tuple[Self, ...]:
        """Return this model with the mechanism, of one of some nodes each, that fits as well and imagines other values.

        What holds under this model and under all of them does not hang on what the data leave open about these nodes.

        Raises
        ------
        InputError
            For a model that was read from a file, which does not keep such a mechanism.
        """
        open_about = {fit.node: fit.tie for fit in self.report.nodes if fit.tie is not None}
        models = []
        for node in nodes:
            if node in open_about:
                variants = self.variants(node)
                if open_about[node] not in variants:
                    raise InputError(
                        f"The mechanism of {node} that fits as well, '{open_about[node]}', was not kept; fit the model "
                        "anew with fit_scm."
                    )
                models.append(variants[open_about[node]])
        return tuple(models)

    def replaced(self, mechanisms: Mapping[str, Mechanism]) -> Self:
        """Return this model with other mechanisms for some nodes."""
        for node in self.graph.known(mechanisms, "mechanisms"):
            if not isinstance(mechanisms[node], Mechanism):
                raise InputError(f"The mechanism of {node} must be a Mechanism, got {mechanisms[node]!r}.")
        other = copy.copy(self)
        other.mechanisms = {**self.mechanisms, **mechanisms}
        return other

    def save(self, path: str | Path) -> None:
        """Write the model to one file, as data without pickle; see `load`.

        The mechanisms that were tried are left out: the report keeps their scores, but `variants` and `ties` need a
        fit, and with ``like=`` every node is fitted again.

        Raises
        ------
        InputError
            For a mechanism with parts that are not this library's, such as a scikit-learn regressor.
        """
        graph = self.graph
        parts = {
            "nodes": graph.nodes,
            "latent": tuple(sorted(graph.latent)),
            "edges": graph.directed,
            "mechanisms": self.mechanisms,
            "kinds": self.kinds,
            "report": self.report,
            "joint_noise": self.joint_noise,
            "seed": self.seed,
        }
        write_parts(parts, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `save` wrote; it imagines what the saved one did, to the last bit."""
        parts = read_parts(Path(path))
        graph = CausalGraph.from_edges(parts["edges"], nodes=parts["nodes"], latent=parts["latent"])
        # An earlier version did not write the seed.
        more = {"joint_noise": parts["joint_noise"], "seed": parts.get("seed", 0)}
        return cls(graph, parts["mechanisms"], parts["kinds"], parts["report"], **more)
