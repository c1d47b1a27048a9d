"""The protected columns are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ciplearn.causal.names import node_of
from ciplearn.routes.route import Candidate, Family, Part, Route, Walk

LEFT_OUT = "left-out"


@dataclass(frozen=True)
class LeftOutRoute(Route):
    """Nothing is penalised; what follows from the protected columns is still seen."""

    name: ClassVar[str] = LEFT_OUT
    rests_on: ClassVar[str] = "nothing; proxies are still seen"
    standing: ClassVar[int] = 2
    how: ClassVar[str] = "The model does not look at the protected columns, and was trained without a penalty."

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield one predictor per learner, without a strength."""
        seen = other_inputs(walk.part)
        if not 0 < len(seen) < len(walk.part.problem.inputs):
            return
        learners = list(walk.part.learners)
        # Another network takes longer than all else, and is worth it where nothing else is there.
        for learner in learners if len(learners) == 1 else [name for name in learners if name != "network"]:
            make = self._maker(learner)
            name = "protected columns left out" if learner == "network" else f"{learner}, protected columns left out"
            one = Candidate(name, self.name, self.rests_on, make(walk.part), make, learner, gamma=0.0)
            walk.step(1)
            yield Family.of([one], walk.part.problem.X.columns)

    def _maker(self, learner: str) -> Callable[[Part], Any]:
        return lambda part: self.trained(part.base(learner, other_inputs(part)))


def other_inputs(part: Part) -> list[str]:
    """Return the inputs that are not protected."""
    nodes, protected = part.problem.graph.nodes, set(part.problem.protected)
    return [name for name in part.problem.inputs if node_of(name, nodes) not in protected]
