"""What the table says against the drawing: independencies that the graph implies and the data refutes."""

from __future__ import annotations

from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.workbench.document import Document
from ciplearn.workbench.tables import Table


def falsified(document: Document, table: Table) -> dict[str, Any]:
    """Test what the graph implies, by `CausalGraph.falsify` where this ciplearn has it."""
    test = getattr(document.graph, "falsify", None)
    if test is None:
        raise InputError("This version of ciplearn has no test of graphs against data; update it.")
    found = test(table.typed(document), random_state=0)
    refuted = {id(entry) for entry in found.refuted} | {str(entry) for entry in found.refuted}
    return {
        "tests": [
            {
                "statement": str(getattr(entry, "independence", entry)),
                "left": list(getattr(entry, "independence", entry).left),
                "right": list(getattr(entry, "independence", entry).right),
                "p": float(entry.p_value),
                "power": _number(getattr(entry, "power", None)),
                "refuted": id(entry) in refuted or str(entry) in refuted,
            }
            for entry in found.tests
        ],
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
