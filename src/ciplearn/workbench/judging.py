"""What the page says about a drawing: the verdict at once, the searches behind it when there is time."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ciplearn._core.wording import as_list, as_set
from ciplearn.causal import Assumption, CausalGraph, Finding, Verdict
from ciplearn.workbench.document import Document

# By the key of an assumption: the tab that does it on this page, and what it shows there.
_BESIDE = {
    "graph": ("data", "A table can refute the drawing, and never prove it."),
    "overlap": ("train", "The report of a kept stop counts imagined rows that lie where there are no data."),
    "inputs": ("outline", "True of every model that is trained here; the outline shows its inputs."),
    "exact": ("train", "Every stop shows what is left: the variance of counterfactuals."),
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
        "assumptions": [_assumption(one) for one in verdict.assumptions],
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


def _assumption(one: Assumption) -> dict[str, Any]:
    """An assumption with the tab of the page that bears on it; without one, with the check of the command line."""
    tab, check = _BESIDE.get(one.key, (None, one.check))
    return {"sentence": str(one), "check": check, "tab": tab}


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
    by_model, by_graph, by_noise = (
        f"the graph {more}" for more in ("and an estimated causal model", "alone", "and additive noise")
    )
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
