"""What the page says about a drawing: the verdict at once, the searches behind it when there is time."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ciplearn._core.wording import as_set
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.causal.assumptions import Assumption
from ciplearn.causal.findings import Finding
from ciplearn.workbench.document import Document
from ciplearn.workbench.routes import routes

# By the beginning of a check: the tab that does it on this page, and what it shows there.
_BESIDE = {
    "ciplearn check": ("data", "A table can refute the drawing, and never prove it."),
    "audit": ("train", "The report of a kept stop counts imagined rows that lie where there are no data."),
    "true of": ("outline", "True of every model that is trained here; the outline shows its inputs."),
    "independence_test": ("train", "Every stop shows what is left: the variance of counterfactuals."),
}

# More sets than a person compares.
_SHOWN_SETS = 12


def judged(document: Document) -> dict[str, Any]:
    """Return the verdict without its searches; it takes milliseconds and is asked for at every change."""
    missing = document.missing_roles()
    if missing:
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
        "reasons": [_reason(finding) for finding in verdict.findings],
        "assumptions": [_assumption(said) for said in verdict.assumptions],
        "notes": list(verdict.warnings),
        "adjustment_sets": _adjustment_sets(document, verdict),
        "routes": [route.to_dict() for route in routes(document, verdict)],
    }


def advised(document: Document) -> dict[str, Any]:
    """Return repairs, each with the document it leads to, and weaker statements; a search that may take seconds."""
    if document.missing_roles():
        return {"repairs": [], "weaker": []}
    verdict = document.verdict()
    return {
        "repairs": [
            {
                "sentence": str(repair),
                "statement": str(repair.independence),
                "document": document.repaired(verdict, repair.changes).to_dict(),
            }
            for repair in verdict.repairs
        ],
        "weaker": [
            {"statement": str(fallback.independence), "implies": fallback.implies} for fallback in verdict.weaker
        ],
    }


def _causal(graph: CausalGraph, verdict: Verdict) -> list[list[str]]:
    """The edges by which what is protected acts on the outcome."""
    if graph.undirected:
        return []
    below = {*verdict.protected, *graph.descendants(verdict.protected)}
    above = {verdict.outcome, *graph.ancestors(verdict.outcome)}
    return [[a, "→", b] for a, b in graph.directed if a in below and b in above]


def _assumption(said: Assumption) -> dict[str, Any]:
    """An assumption with the tab of the page that bears on it; without one, with the check of the command line."""
    tab, check = next((beside for start, beside in _BESIDE.items() if said.check.startswith(start)), (None, said.check))
    return {"sentence": str(said), "check": check, "tab": tab}


def _reason(finding: Finding) -> dict[str, Any]:
    return {
        "condition": finding.condition,
        "holds": finding.holds,
        "sentence": finding.sentence,
        "paths": [
            {"text": str(path), "edges": [list(edge) for edge in path.edges], "nodes": list(path.nodes)}
            for path in finding.paths
        ],
    }


def _adjustment_sets(document: Document, verdict: Verdict) -> dict[str, Any]:
    """The sets that identify the effect of A on Y itself, beside the one that the statement conditions on."""
    graph = document.graph
    if graph.undirected:
        return {"minimal": [], "optimal": None, "more": False, "about": "Direct every edge to see adjustment sets."}
    found = graph.minimal_adjustment_sets(verdict.protected, verdict.outcome, limit=_SHOWN_SETS + 1)
    sets = [sorted(names, key=graph.nodes.index) for names in islice(found, _SHOWN_SETS + 1)]
    optimal = graph.optimal_adjustment_set(verdict.protected, verdict.outcome)
    effect = f"the effect of {as_set(verdict.protected)} on {verdict.outcome}"
    return {
        "minimal": sets[:_SHOWN_SETS],
        "more": len(sets) > _SHOWN_SETS,
        "optimal": None if optimal is None else sorted(optimal, key=graph.nodes.index),
        "about": f"Sets that identify {effect}." if sets else f"No observed set identifies {effect}.",
    }
