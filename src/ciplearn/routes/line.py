"""The straight line from a predictor on unchanged inputs to an unconstrained one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from ciplearn.estimators.preparation import LINE
from ciplearn.routes.route import Candidate, Family, Part, Route, Walk


@dataclass(frozen=True)
class LineRoute(Route):
    """g + s (f − g), whose VCF is s² times that of f."""

    name: ClassVar[str] = LINE
    rests_on: ClassVar[str] = "the graph alone"
    standing: ClassVar[int] = 0
    how: ClassVar[str] = (
        "The model lies on the straight line from a predictor on inputs that nothing protected acts on to one without "
        "a constraint."
    )
    shares: tuple[float, ...]

    @classmethod
    def at(cls, gammas: Sequence[float], shares: Sequence[float]) -> Self:
        """Take the shares."""
        return cls(tuple(shares))

    def trainings(self, learners: int) -> int:
        """Return the steps."""
        return len(self.shares)

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield the line between two networks at each share."""
        candidates = []
        for share in self.shares:
            name, make = f"line, {100 * share:.4g}% of VCF kept", partial(self._trained, share)
            candidates.append(Candidate(name, self.name, self.rests_on, make(walk.part), make, share=float(share)))
            walk.step(1)
        yield Family.of(candidates, walk.part.problem.X.columns)

    def _trained(self, share: float, part: Part) -> Any:
        # Two trainings give the whole line.
        line = part.once("line", lambda: part.prepared(penalised=False).line(part.base("network"), list(self.shares)))
        return line[self.shares.index(share)]
