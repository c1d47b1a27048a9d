"""The workbench: draw the graph, see the verdict, walk along the frontier, on a page of one's own machine.

`Workbench` is the page in a notebook; ``ciplearn workbench`` serves the same page. Both hand the page's messages to one
`Desk`, so that nothing can be done in one place and not in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ciplearn.workbench.widget import Workbench

__all__ = ["Workbench"]


def __getattr__(name: str) -> Any:
    # The server needs no notebook, and a notebook no server.
    if name == "Workbench":
        from ciplearn.workbench.widget import Workbench

        return Workbench
    raise AttributeError(f"module 'ciplearn.workbench' has no attribute {name!r}")
