"""`Route`: what is done about the protected variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ciplearn.routes.family import Candidate, Family
from ciplearn.routes.part import Part


@dataclass(frozen=True, eq=False)
class Walk:
    """Where a route is followed: the rows it trains on, how far, and what it has to say."""

    part: Part
    # Whether a candidate is near enough to what may be taken that a stronger one is worth a training.
    goes_on: Callable[[Candidate], bool] = lambda candidate: True
    loss: Callable[[Any], float] = lambda model: 0.0  # of a model on the rows that judge
    step: Callable[[int], Any] = lambda count: None  # called after each training
    refused: dict[str, str] = field(default_factory=dict)  # why routes are not offered
    notes: list[str] = field(default_factory=list)


class Route(ABC):
    """One way to an invariant predictor.

    Attributes
    ----------
    name : str
        As it is called in options and results.
    rests_on : str
        What has to be right for it to work.
    how : str
        How a model of this route came about, in a sentence; ``{gamma}``, ``{penalty}`` and ``{strength}`` stand for
        those of the model.
    """

    name: ClassVar[str]
    rests_on: ClassVar[str]
    how: ClassVar[str]

    @classmethod
    def at(cls, gammas: Sequence[float], shares: Sequence[float]) -> Self:
        """Return the route at the strengths that it takes of those listed."""
        return cls()

    @abstractmethod
    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield predictors along their strengths, or say in ``walk.refused`` why there are none."""

    def trainings(self, learners: int) -> int:
        """Return how many steps a walk takes at most."""
        return learners

    def trained(self, model: Any) -> Any:
        """Return a model that carries the route's name, which its parts do not tell."""
        model.route_ = self.name
        return model


def along_gammas(route: Route, walk: Walk, name: str, gammas: tuple[float, ...], **settings: Any) -> Family:
    """Train networks from weak to strong penalties, as far as it is worth it."""

    def maker(gamma: float) -> Callable[[Part], Any]:
        return lambda part: route.trained(part.prepared(**settings).trained(gamma))

    candidates: list[Candidate] = []
    for place, gamma in enumerate(sorted(gammas)):
        make = maker(gamma)
        one = Candidate(f"{name}, gamma {gamma:g}", route.name, route.rests_on, make(walk.part), make, gamma=gamma)
        candidates.append(one)
        walk.step(1)
        if not walk.goes_on(one):
            walk.step(len(gammas) - place - 1)
            break
    return Family.of(candidates, walk.part.problem.X.columns)
