"""What the page says about a drawing: the verdict at once, the searches behind it when there is time."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ciplearn._core.wording import as_set
from ciplearn.causal import Verdict
from ciplearn.causal.findings import Finding
from ciplearn.workbench.document import Document
from ciplearn.workbench.routes import routes

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
        "headline": verdict.headline(),
        "statement": str(verdict.independence),
        "reasons": [_reason(finding) for finding in verdict.findings],
        "assumptions": [{"sentence": str(said), "check": said.check} for said in verdict.assumptions],
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
