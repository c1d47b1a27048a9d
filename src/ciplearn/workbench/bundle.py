"""Where the built page is."""

from __future__ import annotations

from pathlib import Path

from ciplearn._core.errors import MissingDataError

BUNDLE = Path(__file__).parent / "page"

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


def bundle_file(name: str) -> Path:
    """Return a file of the built page.

    Raises `MissingDataError` if the page was not built, which happens in a checkout only: an installed ciplearn brings
    it along.
    """
    path = BUNDLE / name
    if not path.is_file():
        raise MissingDataError(
            f"The page of the workbench is not built: {path} is missing; run make workbench, or npm ci, npm run build "
            "in the folder workbench."
        )
    return path


def media_type(name: str) -> str:
    """Return how a file of the page is announced."""
    return _KINDS.get(Path(name).suffix, "image/svg+xml")
