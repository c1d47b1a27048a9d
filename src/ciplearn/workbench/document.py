"""`Document`: what is drawn on the page, as the page sends it; and graphs one click away to begin with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.verdict import Change
from ciplearn.workbench.protocol import DOCUMENT, check


@dataclass(frozen=True)
class Document:
    """A graph with its roles, and what was said about the table's columns.

    The graph itself carries three roles: its exposures are protected, its outcome is the outcome, its adjusted nodes
    are the set to condition on.

    ``context``, ``inputs``: None leaves the choice to the criterion, which takes every observed node but the outcome;
    ``kinds``: "number" or "category" of columns that a person has changed.
    """

    graph: CausalGraph = field(default_factory=CausalGraph)
    context: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, content: Any) -> Self:
        """Read a document from JSON data; an `InputError` or `GraphError` says what is wrong with it."""
        check(content, DOCUMENT, "the drawing")
        # By way of text: the reader of graphs in JSON says what is wrong with them.
        graph = CausalGraph.from_json(json.dumps(content.get("graph", {}), ensure_ascii=False))
        return cls(
            graph,
            _names(graph, content.get("context"), "context"),
            _names(graph, content.get("inputs"), "inputs"),
            content.get("kinds", {}),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON data, the reverse of `read`."""
        return {
            "graph": json.loads(self.graph.to_json()),
            "context": None if self.context is None else list(self.context),
            "inputs": None if self.inputs is None else list(self.inputs),
            "kinds": dict(self.kinds),
        }

    def missing_roles(self) -> list[str]:
        """The roles that a verdict waits for."""
        roles = {"outcome": self.graph.outcomes, "protected": self.graph.exposures}
        return [role for role, nodes in roles.items() if not nodes]

    @property
    def labels(self) -> list[str]:
        """Columns of the drawing that a person has called categories."""
        return [name for name, kind in self.kinds.items() if kind == "category" and name in self.graph.index]

    def verdict(self) -> Verdict:
        """Ask the criterion."""
        return self._verdict

    @cached_property
    def _verdict(self) -> Verdict:
        return self.graph.criterion(context=self.context, inputs=self.inputs)

    def fingerprint(self, table: str) -> str:
        """Tell trainings apart by edges, roles, kinds and the digest of the table, wherever nodes stand."""
        graph, verdict = self.graph, self.verdict()
        either_way = [sorted(map(sorted, edges)) for edges in (graph.bidirected, graph.undirected)]
        drawn = [sorted(graph.nodes), sorted(graph.latent), sorted(graph.directed), *either_way]
        roles = [verdict.outcome, verdict.protected, verdict.context, verdict.inputs, verdict.adjustment]
        content = json.dumps([drawn, roles, sorted(self.kinds.items()), table])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def repaired(self, verdict: Verdict, changes: tuple[Change, ...]) -> Document:
        """Apply the changes of a repair that `verdict` proposes."""
        # The repair was judged for these roles and without an adjustment set of the user's.
        graph, context, inputs = replace(self.graph, adjusted=()), verdict.context, verdict.inputs
        for change in changes:
            graph, context, inputs = change.applied(graph, context, inputs)
        return replace(self, graph=graph, context=context, inputs=inputs).with_defaults()

    def with_defaults(self) -> Document:
        """Write roles that are the default as the default."""
        others = tuple(name for name in self.graph.observed if name not in self.graph.outcomes)
        return replace(
            self,
            context=None if self.context == others else self.context,
            inputs=None if self.inputs == others else self.inputs,
        )


def _names(graph: CausalGraph, content: Any, role: str) -> tuple[str, ...] | None:
    if content is None:
        return None
    chosen = set(graph.known_observed(content, role))
    return tuple(name for name in graph.nodes if name in chosen)


@dataclass(frozen=True)
class Example:
    """A graph in DAGitty's notation, with a name, a sentence, and whether a table can be drawn for it."""

    name: str
    title: str
    about: str
    text: str
    context: tuple[str, ...] | None = None
    has_table: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what a list of examples shows."""
        return {"name": self.name, "title": self.title, "about": self.about, "has_table": self.has_table}

    def document(self) -> Document:
        """Return the drawing."""
        return Document(CausalGraph.from_dagitty(self.text), self.context)


EXAMPLES = (
    Example(
        "demo",
        "The demo: a bank's applicants",
        "The bank predicts income; sex must not influence the prediction. Comes with 8000 made-up people to train on.",
        'dag { region [pos="0,0"] age [pos="1,0"] sex [exposure,pos="1,2"] training [pos="2,0.4"] '
        'hours [pos="2,1.6"] income [outcome,pos="3,1"] '
        "region -> {age training income} {age sex} -> {training hours income} {training hours} -> income }",
        has_table=True,
    ),
    Example(
        "first",
        "The paper's first synthetic case",
        "Z confounds, A acts on Y directly and by way of L.",
        'dag { Z [pos="0,0"] A [exposure,pos="0,1.4"] L [pos="1.3,0.7"] Y [outcome,pos="2.6,0.7"] '
        "Z -> {A L Y} A -> L -> Y A -> Y }",
    ),
    Example(
        "loan",
        "A hidden cause, and how to repair it",
        "Wealth moves region and income, and nobody has measured it: the criterion fails, and says what would help.",
        "dag { region [exposure] loan [outcome] wealth [latent] wealth -> {region income} region -> income -> loan "
        "age -> {income loan} }",
        context=("age", "region"),
    ),
    Example(
        "mediator",
        "The paper's figure (a)",
        "A mediator L with a confounder S: the criterion holds given S.",
        "dag { A [exposure] Y [outcome] A -> L -> Y S -> {L Y} A -> Y }",
    ),
    Example(
        "causal",
        "Causal direction",
        "Features in three parts and a hidden confounder of A and Y.",
        "dag { A [exposure] Y [outcome] A -> X∧ -> Y A -> X_Y⊥ X∧ -> X_Y⊥ X_A⊥ -> {X∧ Y} A <-> Y }",
    ),
    Example(
        "anticausal",
        "Anti-causal direction",
        "The features are effects of Y, which the statement therefore conditions on.",
        "dag { A [exposure] Y [outcome] Y -> {X_A⊥ X∧} A -> {X∧ X_Y⊥} A <-> Y }",
    ),
    Example(
        "adult",
        "Income in blocks",
        "Adult: age and sex, marital status, education, work and income, with unobserved causes.",
        "dag { A [exposure] Y [outcome] H_m [latent] H_d [latent] H_r [latent] A -> {M D R Y} M -> {D R Y} D -> {R Y} "
        "R -> Y C -> {M D R Y} H_m -> M H_d -> D H_r -> R }",
    ),
    Example(
        "mbias",
        "M-bias",
        "M is an effect of two hidden causes: for the effect of A on Y, adjusting for it is a famous trap.",
        "dag { A [exposure] Y [outcome] U1 [latent] U2 [latent] U1 -> {A M} U2 -> {M Y} A -> Y }",
    ),
    Example(
        "napkin",
        "The napkin",
        "A graph in which no adjustment set identifies the effect.",
        "dag { A [exposure] Y [outcome] W -> Z -> A -> Y W <-> A W <-> Y }",
    ),
)


def example(name: Any) -> Example:
    """Return an example by its name."""
    by_name = {one.name: one for one in EXAMPLES}
    if name not in by_name:
        raise InputError(f"There is no example {name!r}; choose one of {', '.join(by_name)}.")
    return by_name[name]
