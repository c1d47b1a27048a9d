"""`Route`: a way to an invariant predictor, whether the graph allows it, and what it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ciplearn._core.wording import as_list, as_set
from ciplearn.causal import Verdict
from ciplearn.workbench.document import Document

_NEEDS_DIRECTIONS = "the direction of every edge must be known"


@dataclass(frozen=True)
class Route:
    """One way.

    Attributes
    ----------
    name : str
        As messages say it: ``"independence"``, ``"counterfactual"``, ``"line"``, ``"cf1"`` or ``"cf2"``.
    title : str
    allowed : bool
    why : str
        Why the graph allows it or not.
    rests_on : str
    """

    name: str
    title: str
    allowed: bool
    why: str
    rests_on: str

    def to_dict(self) -> dict[str, Any]:
        """Return the route as JSON data."""
        return asdict(self)


def routes(document: Document, verdict: Verdict) -> list[Route]:
    """List the routes that the workbench can train, with what the drawing says about each."""
    graph = document.graph
    protected = set(verdict.protected)
    directed = not graph.undirected
    below = set(graph.descendants(verdict.protected)) if directed else set()
    safe = [name for name in verdict.inputs if name not in below]
    moved = [name for name in verdict.inputs if name in below and name not in protected]
    changed = as_list(moved) if moved else "no other input"
    who = as_list(verdict.protected)
    certified = "certifies" if verdict.holds else "does not certify"
    found = [
        Route(
            "independence",
            "Independence penalty",
            verdict.holds,
            f"the graph {certified} {verdict.independence}",
            "the graph alone",
        ),
        Route(
            "counterfactual",
            "Counterfactual penalty",
            directed,
            f"imagines {changed}, had {who} been different",
            "the graph and an estimated causal model",
        ),
        Route(
            "line",
            "Straight line: CF1 mixed with no penalty",
            directed and bool(safe),
            _seen(safe, verdict),
            "the graph alone",
        ),
        Route(
            "cf1",
            f"CF1: without anything that follows from {who}",
            directed and bool(safe),
            _seen(safe, verdict),
            "the graph alone",
        ),
        Route(
            "cf2",
            f"CF2: CF1, and the unexplained rest of what follows from {who}",
            directed,
            f"adds what the parents do not explain of {as_set(moved)}" if moved else "the same as CF1 here",
            "the graph and additive noise",
        ),
    ]
    if directed:
        return found
    return [replace(route, why=_NEEDS_DIRECTIONS) if not route.allowed else route for route in found]


def _seen(safe: list[str], verdict: Verdict) -> str:
    if safe:
        return f"sees {as_set(safe)}"
    return f"every input is changed by {as_set(verdict.protected)}: nothing is left to predict from"
