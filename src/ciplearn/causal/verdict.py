"""`Verdict`: what the criterion says about a graph and a choice of roles, in data and in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.names import Edge, as_names, in_order, unused
from ciplearn.causal.statements import Assumption, Finding, Independence, Path

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

_ROLES = ("protected", "context", "inputs", "adjustment")


def common_cause(graph: CausalGraph, a: str, b: str) -> str:
    """Return the name that the cause behind a ↔ b gets once it is measured."""
    return unused(f"common cause of {a} and {b}", graph.index)


@dataclass(frozen=True)
class Change:
    """One change to the graph or to the roles.

    Attributes
    ----------
    kind : str
        ``"measure"``, ``"drop edge"``, ``"drop common cause"``, ``"direct edge"``, ``"add to context"``,
        ``"drop from context"``, ``"drop from inputs"`` or ``"adjust for"``.
    nodes : tuple of str
        The node, the two ends of the edge, or the adjustment set.
    sentence : str

    Examples
    --------
    >>> from ciplearn.causal import Change
    >>> print(Change("measure", ("U",), "measure U"))
    measure U
    """

    kind: str
    nodes: tuple[str, ...]
    sentence: str = field(compare=False)

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON-ready data."""
        return {**vars(self), "nodes": list(self.nodes)}

    def applied(
        self, graph: CausalGraph, context: tuple[str, ...], inputs: tuple[str, ...]
    ) -> tuple[CausalGraph, tuple[str, ...], tuple[str, ...]]:
        """Return graph, context and inputs as they are after the change."""
        fields: dict[str, Any] = {}
        if self.kind == "measure" and len(self.nodes) == 1:
            fields["latent"] = graph.latent - {*self.nodes}
        elif self.kind in ("measure", "drop common cause"):
            fields["bidirected"] = tuple(pair for pair in graph.bidirected if pair != self.nodes)
            if self.kind == "measure":
                cause = common_cause(graph, *self.nodes)
                fields["directed"] = (*graph.directed, *((cause, node) for node in self.nodes))
        elif self.kind == "drop edge":
            fields["directed"] = tuple(edge for edge in graph.directed if edge != self.nodes)
        elif self.kind == "direct edge":
            fields["undirected"] = tuple(edge for edge in graph.undirected if set(edge) != set(self.nodes))
            fields["directed"] = (*graph.directed, self.nodes)
        elif self.kind == "adjust for":
            fields["adjusted"] = self.nodes
        elif self.kind == "add to context":
            context = in_order((*context, *self.nodes))
        elif self.kind == "drop from context":
            context = tuple(name for name in context if name not in self.nodes)
        elif self.kind == "drop from inputs":
            inputs = tuple(name for name in inputs if name not in self.nodes)
        else:
            raise InputError(f"A repair cannot apply {self.kind!r}; change the drawing by hand.")
        return replace(graph, **fields) if fields else graph, context, inputs

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Change:
        """Read what `to_dict` wrote."""
        return cls(content["kind"], tuple(content["nodes"]), content["sentence"])


@dataclass(frozen=True)
class Repair:
    """Changes that together make the criterion hold, and the independence that then does.

    >>> from ciplearn import CausalGraph
    >>> graph = CausalGraph.from_edges("A -> L, L -> Y")
    >>> verdict = graph.criterion(outcome="Y", protected=["A"], context=["L"], inputs=["L"], adjustment=["L"])
    >>> print(verdict.repairs[0])
    Adjust for ∅ instead of {L}: then Ŷ ⊥ {A, L} suffices.
    """

    changes: tuple[Change, ...]
    independence: Independence

    def __str__(self) -> str:
        orders = as_list(change.sentence for change in self.changes)
        return f"{orders[0].upper()}{orders[1:]}: then {self.independence} suffices."

    def to_dict(self) -> dict[str, Any]:
        """Return the repair as JSON-ready data."""
        changes = [change.to_dict() for change in self.changes]
        return {"changes": changes, "independence": self.independence.to_dict(), "sentence": str(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Repair:
        """Read what `to_dict` wrote."""
        changes = tuple(Change.from_dict(change) for change in content["changes"])
        return cls(changes, Independence.from_dict(content["independence"]))


@dataclass(frozen=True)
class Fallback:
    """A statement that a penalty can enforce although the criterion fails, and what it buys.

    >>> from ciplearn.causal import Fallback, Independence
    >>> print(Fallback(Independence("A", "L"), "parity in the data"))
    Ŷ ⊥ {A} | {L}: parity in the data
    """

    independence: Independence
    implies: str

    def __str__(self) -> str:
        return f"{self.independence}: {self.implies}"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready data."""
        return {"independence": self.independence.to_dict(), "implies": self.implies}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Fallback:
        """Read what `to_dict` wrote."""
        return cls(Independence.from_dict(content["independence"]), content["implies"])


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer of the criterion.

    Attributes
    ----------
    holds : bool
        Whether enforcing `independence` makes the predictor counterfactually invariant in `protected` with respect to
        `protected`, `context` and `adjustment`, under `assumptions`.
    paper_condition : bool
        Whether the theorem holds as the paper prints it: validity for the outcome instead of the predictor.
    independence : Independence
        The statement for a penalty to enforce, Ŷ ⊥ (A ∪ W) ∖ S | S.
    findings : tuple of Finding
    assumptions : tuple of Assumption
        What no data can prove, as sentences; each has a `check` that bears on it.
    warnings : tuple of str
        What the statement does to the predictor that its reader may not expect.
    injective : tuple of str
        Nodes assumed injective in their total noise, because they are confounded.
    outcome, protected, context, inputs, adjustment, graph
        What was judged.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> graph = CausalGraph.from_edges("S -> {A L Y}, A -> {L Y}, L -> Y")
    >>> verdict = graph.criterion(outcome="Y", protected=["A"])
    >>> verdict.holds
    True
    >>> print(verdict.independence)
    Ŷ ⊥ {A, L} | {S}
    """

    holds: bool
    paper_condition: bool
    independence: Independence
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    injective: tuple[str, ...]
    outcome: str
    protected: tuple[str, ...]
    context: tuple[str, ...]
    inputs: tuple[str, ...]
    adjustment: tuple[str, ...]
    graph: CausalGraph
    # Searches, run when first asked for: many callers want the verdict alone.
    find_repairs: Callable[[], tuple[Repair, ...]] = field(compare=False)
    find_fallbacks: Callable[[], tuple[Fallback, ...]] = field(compare=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(holds={self.holds}, independence={str(self.independence)!r})"

    def __bool__(self) -> bool:
        # Either reading of `if verdict:` ("is there one", "does it hold") would be a silent mistake for someone.
        raise InputTypeError("A verdict is not true or false by itself; ask verdict.holds.")

    @property
    def reasons(self) -> tuple[str, ...]:
        """The findings as sentences."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def open_paths(self) -> tuple[Path, ...]:
        """The paths of the findings that speak against the verdict, those on the paper's condition left out."""
        against = (f for f in self.findings if not f.holds and f.condition != "paper")
        return tuple(dict.fromkeys(path for finding in against for path in finding.paths))

    @cached_property
    def repairs(self) -> tuple[Repair, ...]:
        """The smallest changes that would make the criterion hold; none where it does, or where none was found."""
        return self.find_repairs()

    @cached_property
    def weaker(self) -> tuple[Fallback, ...]:
        """What a penalty can still buy where the criterion fails, strongest first."""
        return self.find_fallbacks()

    @property
    def respects(self) -> tuple[str, ...]:
        """A ∪ W ∪ S: what a person is known by in the conclusion."""
        return in_order((*self.protected, *self.context, *self.adjustment))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the graph as JSON-ready data; `from_dict` reads it back."""
        repairs, weaker = ([way.to_dict() for way in ways] for ways in (self.repairs, self.weaker))
        return {**self._judgement(), "repairs": repairs, "weaker": weaker}

    def _judgement(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "paper_condition": self.paper_condition,
            "independence": self.independence.to_dict(),
            "outcome": self.outcome,
            **{role: list(getattr(self, role)) for role in _ROLES},
            "reasons": [finding.to_dict() for finding in self.findings],
            "assumptions": [assumption.sentence for assumption in self.assumptions],
            "checks": [assumption.check for assumption in self.assumptions],
            "keys": [assumption.key for assumption in self.assumptions],
            "injective": list(self.injective),
            "warnings": list(self.warnings),
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any], graph: CausalGraph) -> Verdict:
        """Read back what `to_dict` wrote about `graph`, without judging again; `InputError` if it is not that."""
        try:
            fields = _read_fields(content, graph)
            if "members" not in content:
                return Verdict(**fields)
            fields |= {"holds_in": content["holds_in"], "complete": content["complete"], "members": ()}
            fields["deciding"] = tuple((a, b) for a, b in content["deciding"])
            for member in content["members"]:
                drawn = (*graph.directed, *map(tuple, member["directed"]))
                judged = Verdict(**_read_fields(member, replace(graph, directed=drawn, undirected=())))
                fields["members"] += (judged,)
            return ClassVerdict(**fields)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            why = f"This is no verdict on this graph ({type(error).__name__}: {error})"
            raise InputError(f"{why}; pass what to_dict() returned and the graph that was judged.") from error

    def in_words(self) -> str:
        """Return what the verdict comes to, without a sign."""
        proviso = f" if {as_set(self.injective)} is injective in its total noise" if self.injective else ""
        begins = f"Holds{proviso}" if self.holds else "Does not hold"
        ends = "would have been the same" if self.holds else "might still have been another"
        return (
            f"{begins}: a prediction that {self.independence.in_words()} {ends}, had {as_list(self.protected)} been "
            "different."
        )

    def headline(self) -> str:
        """Return the verdict in words, and what it is about."""
        return f"{self.in_words()} That is about the drawing, not about a model: an audit judges a model."

    def sections(self) -> list[tuple[str, list[str]]]:
        """Return titles with their sentences, as they are printed."""
        makes = f"{self.independence} {'makes' if self.holds else 'does not make'} the predictor counterfactually "
        makes += f"invariant in {as_set(self.protected)} with respect to {as_set(self.respects)}."
        marked = [(f.condition == "paper", f"{'✓' if f.holds else '✗'} {f.sentence}") for f in self.findings]
        titled = [
            ("Reasons", [sentence for printed, sentence in marked if not printed]),
            ("Assumptions, and what bears on them", [f"{each} Check: {each.check}" for each in self.assumptions]),
            ("Notes", list(self.warnings)),
            ("Smallest repairs", [str(repair) for repair in self.repairs]),
            ("What a penalty can still buy", [str(fallback) for fallback in self.weaker]),
            (
                "In the paper's signs, and its condition",
                [makes, *(sentence for printed, sentence in marked if printed)],
            ),
        ]
        return [(title, sentences) for title, sentences in titled if sentences]

    def __str__(self) -> str:
        lines = [self.headline()]
        for title, sentences in self.sections():
            lines += ["", title, *(f"  {sentence}" for sentence in sentences)]
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        return self.graph.to_svg(verdict=self)


@dataclass(frozen=True, repr=False)
class ClassVerdict(Verdict):
    """The verdict over every graph of a class: `holds` means that it holds in all of them, with one adjustment set.

    Attributes
    ----------
    holds_in : str
        ``"all"``, ``"some"`` or ``"none"`` of the members.
    members : tuple of Verdict
    deciding : tuple of pairs
        Undirected edges (a, b) such that the verdict holds in every member with a → b and in no member with b → a.
    complete : bool
        False where the class has more members than were judged; then `holds` is False.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> graph = CausalGraph.from_dagitty("pdag { S -- A ; A -> Y ; S -> Y }")
    >>> verdict = graph.criterion(outcome="Y", protected=["A"])
    >>> type(verdict).__name__, verdict.holds
    ('ClassVerdict', True)
    """

    holds_in: str
    members: tuple[Verdict, ...]
    deciding: tuple[Edge, ...]
    complete: bool

    def to_dict(self) -> dict[str, Any]:
        """Return all but the graph as JSON-ready data; members by their directions, without repairs of their own."""
        members = [{"directed": list(map(list, self.chosen(member))), **member._judgement()} for member in self.members]
        scope = {"holds_in": self.holds_in, "complete": self.complete, "deciding": list(map(list, self.deciding))}
        return {**super().to_dict(), **scope, "members": members}

    def chosen(self, member: Verdict) -> tuple[Edge, ...]:
        """Return the directions that a member gives to the undirected edges."""
        both_ways = (edge for a, b in self.graph.undirected for edge in ((a, b), (b, a)))
        return tuple(edge for edge in both_ways if edge in member.graph.directed)


def _read_fields(content: Mapping[str, Any], graph: CausalGraph) -> dict[str, Any]:
    for role in _ROLES:
        graph.known_observed(content[role], role)
    return {
        "holds": content["holds"],
        "paper_condition": content["paper_condition"],
        "independence": Independence.from_dict(content["independence"]),
        "findings": tuple(map(Finding.from_dict, content["reasons"])),
        # A verdict that was kept before assumptions had keys has none.
        "assumptions": tuple(
            map(Assumption, content["assumptions"], content["checks"], content.get("keys") or repeat(""))
        ),
        "outcome": graph.known_observed(content["outcome"], "outcome")[0],
        **{name: tuple(content[name]) for name in (*_ROLES, "warnings")},
        "injective": as_names(content["injective"], "injective"),
        "graph": graph,
        "find_repairs": partial(tuple, [Repair.from_dict(repair) for repair in content.get("repairs", ())]),
        "find_fallbacks": partial(tuple, [Fallback.from_dict(weaker) for weaker in content.get("weaker", ())]),
    }
