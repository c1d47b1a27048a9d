"""What the table says against the drawing: independencies that the graph implies and the data refutes."""

from __future__ import annotations

from typing import Any

from ciplearn.workbench.document import Document
from ciplearn.workbench.tables import Table

# Tests that a person waits for.
_MOST_TESTS = 200


def falsified(document: Document, table: Table) -> dict[str, Any]:
    """Test what the graph implies, by `CausalGraph.falsify`.

    Each statement comes with its p-value, corrected for their number, and its power: the smallest partial correlation
    that would have been found with probability 0.8.
    """
    found = document.graph.falsify(table.typed(document), limit=_MOST_TESTS, random_state=0)
    violated = set(found.violated)
    rows = found.tests.astype(object).where(found.tests.notna(), None)
    return {
        "refuted": found.refuted,
        "sentence": str(found),
        "tests": [
            {
                "statement": str(statement),
                "left": list(statement.left),
                "right": list(statement.right),
                "p": row["p_adjusted"],
                "detectable": row["detectable"],
                "obstacle": row["obstacle"] or "",
                "refuted": statement in violated,
            }
            for statement, (_, row) in zip(found.statements, rows.iterrows(), strict=True)
        ],
    }
