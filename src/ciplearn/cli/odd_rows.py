"""`OddRows`: what is odd in rows that a model is asked about, counted over all of them and said once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ciplearn.cli.output import note
from ciplearn.estimators.tables import far_outside, taken_for_possible

_NAMED = 5  # labels that training never saw are named up to this number


@dataclass
class OddRows:
    """Labels and numbers that training never saw the like of, with their rows."""

    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)  # by column and label
    far: dict[str, tuple[int, float]] = field(default_factory=dict)  # by column, with one of the numbers
    impossible: Counter[str] = field(default_factory=Counter)  # by column: what a repaired model cannot imagine

    @classmethod
    def of(cls, model: Any, rows: pd.DataFrame) -> OddRows:
        """Count them in complete rows."""
        counts = {
            (name, each): n for name, labels in model.encoding_.unseen(rows).items() for each, n in labels.items()
        }
        beyond = model.worlds.impossible(rows) if hasattr(model, "worlds") else {}
        return cls(
            Counter(counts), model.encoding_.far(rows), Counter({name: int(b.sum()) for name, b in beyond.items()})
        )

    def update(self, other: OddRows) -> None:
        """Take in what was counted in other rows."""
        self.unseen.update(other.unseen)
        self.impossible.update(other.impossible)
        for name, (count, value) in other.far.items():
            before, example = self.far.get(name, (0, value))
            self.far[name] = before + count, example

    def say(self, model: Any) -> None:
        """Note them, a sentence each."""
        if self.unseen:
            named = ", ".join(f"{label!r} in {column} ({n})" for (column, label), n in self.unseen.most_common(_NAMED))
            more = f" and {len(self.unseen) - _NAMED} more" if len(self.unseen) > _NAMED else ""
            note(f"training never saw these labels, which the model takes for none that it knows: {named}{more}.")
        for name, some in self.far.items():
            note(f"{far_outside(model.encoding_, name, *some)}.")
        for name, count in self.impossible.items():
            note(f"{taken_for_possible(name, count)}.")

    def data(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "unseen_labels": [{"column": name, "label": label, "rows": n} for (name, label), n in self.unseen.items()],
            "far_numbers": [{"column": name, "rows": n, "example": value} for name, (n, value) in self.far.items()],
            "impossible_numbers": [{"column": name, "rows": n} for name, n in self.impossible.items()],
        }
