"""Results as markdown, from the JSON that the runner writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Result = Mapping[str, Any]

_MARKS = {True: "holds", False: "**does not hold**"}


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A markdown table."""
    lines = [_line(headings), _line(["---"] * len(headings))]
    lines += [_line(row) for row in rows]
    return "\n".join(lines)


def section(result: Result, remarks: Iterable[str] = (), base: str = "", level: int = 1) -> str:
    """One study's results; ``base`` is the path from the page to the study's folder, with a slash at its end."""
    heading = "#" * level
    parts = [f"{heading} {result['title']}", f"`{result['command']}`, {_where(result)}."]
    for comparison in result["comparisons"]:
        rows = ([row[name] for name in comparison["columns"]] for row in comparison["rows"])
        parts += [comparison["caption"], table(comparison["columns"], rows)]
    if result["figure"]:
        parts.append(f"![{result['caption']}]({base}{result['figure']})")
        parts.append(f"*{result['caption']}*")
    if result["claims"]:
        parts.append(claims_table(result["claims"]))
    if result["unmatched"]:
        rows = ([entry["what"], entry["paper"], entry["ours"], entry["reason"]] for entry in result["unmatched"])
        parts.append("Numbers of the paper that do not come out:")
        parts.append(table(["number", "paper", "ours", "reason"], rows))
    parts += [f"* {note}" for note in (*result["notes"], *remarks)]
    files = [*result["tables"], "result.json"]
    parts.append("Files: " + " · ".join(f"[{name}]({base}{name})" for name in files))
    return _joined(parts)


def claims_table(claims: Iterable[Mapping[str, Any]]) -> str:
    """The claims and how each was judged."""
    rows = ([entry["claim"], entry["method"], entry["statistic"], _MARKS[entry["holds"]]] for entry in claims)
    return table(["claim", "settings", "statistic", "outcome"], rows)


def _where(result: Result) -> str:
    # Results of earlier versions do not say what they found ready.
    beside = ", beside what an earlier run had kept" if result.get("reused") else ""
    return f"{result['seconds']:.0f} s on {result['device']}{beside}"


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _joined(parts: Sequence[str]) -> str:
    """Blocks apart, points of one list together."""
    text = parts[0]
    for before, part in pairwise(parts):
        text += ("\n" if before.startswith("* ") and part.startswith("* ") else "\n\n") + part
    return text + "\n"
