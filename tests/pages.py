"""The fenced blocks of the README and of the pages under docs, as a reader meets them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FOLDERS = (ROOT, ROOT / "docs", ROOT / "docs" / "guide", ROOT / "docs" / "theory")
PAGES = [str(page.relative_to(ROOT)) for folder in _FOLDERS for page in sorted(folder.glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """What stands between two fences; the caption is the name of the file that the reader saves it as."""

    page: str
    language: str
    caption: str
    text: str


def blocks(page, language=None):
    """The blocks of code on a page, of one language or of all. What only arranges the page (toctree, ...) is none."""
    found = []
    text = (ROOT / page).read_text(encoding="utf-8")
    for info, inside in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        head = re.fullmatch(r"(?:\{code-block\} )?(\w*)", info)
        if head and language in (None, head[1]):
            caption = re.match(r":caption: (.*)\n\n", inside)
            found.append(Block(page, head[1], caption[1] if caption else "", inside[caption.end() if caption else 0 :]))
    return found


def python_on(page):
    """The Python of a page, block by block."""
    return [block.text for block in blocks(page, "python")]


def commands_on(page):
    """What a reader types on a page: each command as its words, without comments."""
    lines = "".join(block.text for block in blocks(page, "shell")).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]
