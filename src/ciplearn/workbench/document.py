"""`Document`: what is drawn on the page; what the page says about it; and graphs one click away to begin with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal import CausalGraph, Change, Path, Verdict
from ciplearn.causal.names import in_order
from ciplearn.workbench.protocol import DOCUMENT, check

# By the key of an assumption: the tab that does it on this page, and what it shows there.
_BESIDE = {
    "graph": ("data", "A table can refute the drawing, and never prove it."),
    "overlap": ("train", "The report of a kept stop counts imagined rows that lie where there are no data."),
    "inputs": ("outline", "True of every model that is trained here; the outline shows its inputs."),
    "exact": ("train", "Every stop shows what is left: the variance of counterfactuals."),
}

_SHOWN_SETS = 12  # more than a person compares


@dataclass(frozen=True)
class Document:
    """A graph with its roles, and what was said about the table's columns."""

    # Its exposures are protected, its outcome is the outcome, its adjusted nodes are the set to condition on.
    graph: CausalGraph = field(default_factory=CausalGraph)
    context: tuple[str, ...] | None = None  # None leaves the choice to the criterion
    inputs: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)  # "number" or "category", where a person has changed it

    @classmethod
    def read(cls, content: Any) -> Self:
        """Read a document from JSON data; an `InputError` or `GraphError` says what is wrong with it."""
        check(content, DOCUMENT, "the drawing")
        # By way of text: the reader of graphs in JSON says what is wrong with them.
        graph = CausalGraph.from_json(json.dumps(content.get("graph", {}), ensure_ascii=False))
        chosen = {role: content[role] for role in ("context", "inputs") if content.get(role) is not None}
        chosen = {role: in_order(graph.known_observed(names, role)) for role, names in chosen.items()}
        return cls(graph, **chosen, kinds=content.get("kinds", {}))

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
        """Tell trainings apart by edges, roles, kinds and the digest of the table, a part each, not by places."""
        graph, verdict = self.graph, self.verdict()
        either_way = [sorted(map(sorted, edges)) for edges in (graph.bidirected, graph.undirected)]
        drawn = [sorted(graph.nodes), sorted(graph.latent), sorted(graph.directed), *either_way]
        roles = [verdict.outcome, verdict.protected, verdict.context, verdict.inputs, verdict.adjustment]
        parts = (drawn, roles, sorted(self.kinds.items()), table)
        return "-".join(hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16] for part in parts)

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


def judged(document: Document) -> dict[str, Any]:
    """Return the verdict without its searches; it takes milliseconds and is asked for at every change."""
    if missing := document.missing_roles():
        return {"state": "roles", "missing": missing}
    verdict = document.verdict()
    return {
        "state": "judged",
        "holds": verdict.holds,
        "holds_in": getattr(verdict, "holds_in", None),
        "statement": str(verdict.independence),
        **{side: list(getattr(verdict.independence, side)) for side in ("right", "given")},
        **{role: list(getattr(verdict, role)) for role in ("protected", "adjustment", "injective")},
        "causal": _causal(document.graph, verdict),
        "biasing": [list(edge) for path in verdict.open_paths for edge in path.edges],
        "reasons": [
            {"paths": [_path(path) for path in one.paths]}
            | {name: getattr(one, name) for name in ("condition", "holds", "sentence")}
            for one in verdict.findings
        ],
        # The tab of the page that bears on an assumption; without one, the check of the command line.
        "assumptions": [
            dict(zip(("tab", "check"), _BESIDE.get(one.key, (None, one.check)), strict=True)) | {"sentence": str(one)}
            for one in verdict.assumptions
        ],
        "notes": list(verdict.warnings),
        "adjustment_sets": _adjustment_sets(document, verdict),
        "routes": _routes(document, verdict),
    }


def advised(document: Document) -> dict[str, Any]:
    """Return repairs, each with the document it leads to, and weaker statements; a search that may take seconds."""
    if document.missing_roles():
        return {"repairs": [], "weaker": []}
    verdict = document.verdict()
    return {
        "repairs": [
            {"sentence": str(repair), "document": document.repaired(verdict, repair.changes).to_dict()}
            for repair in verdict.repairs
        ],
        "weaker": [{"statement": str(one.independence), "implies": one.implies} for one in verdict.weaker],
    }


def _causal(graph: CausalGraph, verdict: Verdict) -> list[list[str]]:
    """The edges by which what is protected acts on the outcome."""
    if graph.undirected:
        return []
    below = {*verdict.protected, *graph.descendants(verdict.protected)}
    above = {verdict.outcome, *graph.ancestors(verdict.outcome)}
    return [[a, "→", b] for a, b in graph.directed if a in below and b in above]


def _path(path: Path) -> dict[str, Any]:
    return {"text": str(path), "edges": [list(edge) for edge in path.edges], "nodes": list(path.nodes)}


def _adjustment_sets(document: Document, verdict: Verdict) -> dict[str, Any]:
    """The sets that identify the effect of A on Y itself, beside the one that the statement conditions on."""
    graph = document.graph
    if graph.undirected:
        return {"minimal": [], "optimal": None, "more": False, "about": "Direct every edge to see adjustment sets."}
    minimal = graph.minimal_adjustment_sets(verdict.protected, verdict.outcome, limit=_SHOWN_SETS + 1)
    sets = [list(in_order(names)) for names in minimal]
    optimal = graph.optimal_adjustment_set(verdict.protected, verdict.outcome)
    effect = f"the effect of {as_set(verdict.protected)} on {verdict.outcome}"
    return {
        "minimal": sets[:_SHOWN_SETS],
        "more": len(sets) > _SHOWN_SETS,
        "optimal": None if optimal is None else list(in_order(optimal)),
        "about": f"Sets that identify {effect}." if sets else f"No observed set identifies {effect}.",
    }


def _routes(document: Document, verdict: Verdict) -> list[dict[str, Any]]:
    """The ways to an invariant predictor: whether the drawing allows each, why, and what it rests on."""
    directed = not document.graph.undirected
    below = set(document.graph.descendants(verdict.protected)) if directed else set()
    safe = [name for name in verdict.inputs if name not in below]
    moved = [name for name in verdict.inputs if name in below and name not in verdict.protected]
    who, imagined = as_list(verdict.protected), as_list(moved) if moved else "no other input"
    imagines = f"imagines {imagined}, had {who} been different"
    sees = f"sees {as_set(safe)}"
    if directed and not safe:
        sees = f"every input is changed by {as_set(verdict.protected)}: nothing is left to predict from"
    rest = f"adds what the parents do not explain of {as_set(moved)}" if moved else "the same as CF1 here"
    certified = "certifies" if verdict.holds else "does not certify"
    by_model, by_graph = "the graph and an estimated causal model", "the graph alone"
    by_noise = "the graph and additive noise"
    ways = (
        ("Repair: the smallest change of a trained model", directed, imagines, by_model),
        ("Independence penalty", verdict.holds, f"the graph {certified} {verdict.independence}", by_graph),
        ("Counterfactual penalty", directed, imagines, by_model),
        ("Straight line: CF1 mixed with no penalty", directed and bool(safe), sees, by_graph),
        (f"CF1: without anything that follows from {who}", directed and bool(safe), sees, by_graph),
        (f"CF2: CF1, and the unexplained rest of what follows from {who}", directed, rest, by_noise),
    )
    unknown = "the direction of every edge must be known"
    return [
        {"title": title, "allowed": allowed, "why": why if allowed or directed else unknown, "rests_on": rests_on}
        for title, allowed, why, rests_on in ways
    ]


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
        "The bank predicts income; sex must not influence the prediction. Comes with 4000 made-up people to train on.",
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
