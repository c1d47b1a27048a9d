"""Where the built page is."""

from __future__ import annotations

from pathlib import Path

from ciplearn._core.errors import MissingDataError

BUNDLE = Path(__file__).parent / "page"


def bundle_file(name: str) -> Path:
    """Return a file of the built page, which only a checkout may lack: an installed ciplearn brings it along."""
    path = BUNDLE / name
    if not path.is_file():
        raise MissingDataError(
            f"The page of the workbench is not built: {path} is missing; run make workbench, or npm ci, npm run build "
            "in the folder workbench."
        )
    return path
