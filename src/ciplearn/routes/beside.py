"""What is measured beside the routes: predictors without a constraint, and baselines that are shown and not taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ciplearn._core.errors import CiplearnError
from ciplearn.baselines import CF1, CF2
from ciplearn.estimators.learner import NETWORK_KEYWORDS
from ciplearn.routes.route import BASELINE, FREE, Candidate, Family, Part, Route, Walk

# Baseline, its settings, what it rests on: one line adds another.
_BASELINES: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "CF1": (CF1, {}, "the graph"),
    "CF2": (CF2, {"regress_on": "parents"}, "the graph and additive noise"),
}


@dataclass(frozen=True)
class Unconstrained(Route):
    """Each learner's best predictor, which everything else is compared with."""

    name: ClassVar[str] = FREE
    rests_on: ClassVar[str] = "nothing"
    how: ClassVar[str] = "The model was trained for accuracy alone."

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield one predictor per learner."""
        for learner in walk.part.learners:
            name = FREE if len(walk.part.learners) == 1 else f"{FREE} {learner}"
            one = Candidate(
                name, FREE, self.rests_on, walk.part.base(learner), partial(Part.base, learner=learner), learner
            )
            yield Family.of([one], walk.part.problem.X.columns)
            walk.step(1)


@dataclass(frozen=True)
class Baselines(Route):
    """Predictors that others have proposed."""

    name: ClassVar[str] = BASELINE

    def trainings(self, learners: int) -> int:
        """Return one step each."""
        return len(_BASELINES)

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield each that this graph allows."""
        for name, (_, _, rests_on) in _BASELINES.items():
            make = partial(_baseline, name)
            try:
                one = Candidate(name, BASELINE, rests_on, make(walk.part), make)
                yield Family.of([one], walk.part.problem.X.columns)
            except CiplearnError as refusal:
                walk.refused[name] = f"{name} is not offered: {refusal}"
            walk.step(1)


def _baseline(name: str, part: Part) -> Any:
    kind, settings, _ = _BASELINES[name]
    problem = part.problem
    return kind(
        graph=problem.graph,
        outcome=problem.outcome,
        protected=list(problem.roles.protected),
        inputs=list(problem.inputs),
        task=problem.task,
        random_state=part.seed,
        **{setting: getattr(part.network, setting) for setting in ("missing", *NETWORK_KEYWORDS)},
        **settings,
    ).fit(problem.X, problem.y)
