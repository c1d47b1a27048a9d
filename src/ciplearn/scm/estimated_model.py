"""A structural causal model whose mechanisms were estimated."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm.estimate import MechanismChoice, Memory
from ciplearn.scm.kinds import Kind
from ciplearn.scm.mechanism import JointNoise, Mechanism
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.report import FitReport
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
        Whether there are neither misfits nor ambiguities: the data do not speak against the mechanisms. The graph may
        still be wrong.
    choices : mapping from node to MechanismChoice
        The mechanisms that were tried for each node, with their held-out losses.
    memory : dict
        What was fitted, for ``fit_scm(..., like=this)``.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> scm = fit_scm(world.graph, world.sample(400, random_state=0), random_state=0)
    >>> scm.misfits, scm.ambiguities
    ((), ())
    """

    model_based = True
    report: FitReport

    def __init__(
        self,
        graph: CausalGraph,
        mechanisms: Mapping[str, Mechanism],
        kinds: Mapping[str, Kind],
        report: FitReport,
        choices: Mapping[str, MechanismChoice] | None = None,
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
        """Return this model with each other mechanism of a node that predicts held-out rows about as well, by its name.

        The range of an answer over them is how far it hangs on the choice of the mechanism.
        """
        self.graph.known([node])
        equals = self.choices[node].equals if node in self.choices else ()
        return {other.label: self.replaced({node: other.mechanism}) for other in equals}

    def ties(self, nodes: Iterable[str]) -> tuple[Self, ...]:
        """Return this model with the mechanism, of one of some nodes each, that fits as well and imagines other values.

        What holds under this model and under all of them does not hang on what the data leave open about these nodes. A
        model that was read from a file does not keep such mechanisms, which is an error.
        """
        tied = {fit.node: fit.tie for fit in self.report.nodes if fit.tie is not None}
        models = []
        for node in nodes:
            if node in tied:
                variants = self.variants(node)
                if tied[node] not in variants:
                    raise InputError(
                        f"The mechanism of {node} that fits as well, '{tied[node]}', was not kept; fit the model anew "
                        "with fit_scm."
                    )
                models.append(variants[tied[node]])
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
        """Write the model to one file, as data without pickle; parts such as a scikit-learn regressor are refused.

        The mechanisms that were tried are left out: the report keeps their scores, but `variants` and `ties` need a
        fit, and with ``like=`` every node is fitted again.
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
