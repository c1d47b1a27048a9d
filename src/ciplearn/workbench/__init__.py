"""The workbench: draw the graph, see the verdict, walk along the frontier, on a page of one's own machine.

`Workbench` is the page in a notebook; ``ciplearn workbench`` serves the same page. Both hand the page's messages to one
`Desk`, so that nothing can be done in one place and not in the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import MissingDataError

if TYPE_CHECKING:
    from ciplearn.workbench.widget import Workbench

__all__ = ["Workbench"]

BUNDLE = Path(__file__).parent / "page"  # as it is built


def __getattr__(name: str) -> Any:
    # The server needs no notebook, and a notebook no server.
    if name == "Workbench":
        from ciplearn.workbench.widget import Workbench

        return Workbench
    raise AttributeError(f"module 'ciplearn.workbench' has no attribute {name!r}")


def bundle_file(name: str) -> Path:
    """Return a file of the built page, which only a checkout may lack: an installed ciplearn brings it along."""
    path = BUNDLE / name
    if not path.is_file():
        raise MissingDataError(
            f"The page of the workbench is not built: {path} is missing; run make workbench, or npm ci, npm run build "
            "in the folder workbench."
        )
    return path
