"""`Route`: what is done about the protected variables; the `Part` of rows it learns from, the `Family` it gives."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from ciplearn._core.errors import CiplearnError, NotCertifiedWarning
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.learner import Learner
from ciplearn.estimators.preparation import Prepared, prepare
from ciplearn.estimators.problem import Problem
from ciplearn.evaluation.predictors import Predictor
from ciplearn.scm import EstimatedModel, fit_scm

Array = np.ndarray[Any, Any]
Made = TypeVar("Made")

# What a predictor without a constraint, and one that is only shown, are called.
FREE, BASELINE = "unconstrained", "baseline"


def blindly(learner: str) -> str:
    """Return what a learner's path is called where open noise is drawn as if the row said nothing of it."""
    return f"{learner}, blindly"


@dataclass(frozen=True, eq=False)
class Candidate:
    """One predictor of a family."""

    name: str  # unlike any other's
    kind: str  # its route, "unconstrained" or "baseline"
    rests_on: str
    model: Any  # fitted
    make: Callable[[Part], Any]  # trains it on other rows
    learner: str = "network"
    # How strongly it is kept from following A, in the route's own unit.
    gamma: float | None = None
    share: float | None = None
    strength: float | None = None

    def about(self) -> dict[str, Any]:
        """Return what a row of the comparison says of it before anything is measured."""
        names = ("name", "kind", "learner", "gamma", "share", "strength", "rests_on")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class Family:
    """Candidates of one route and learner, and their answers to the same rows."""

    candidates: tuple[Candidate, ...]
    reads: tuple[str, ...]  # the columns that all of them need
    along: Callable[[pd.DataFrame], Array]  # (n, candidates, q): a number, a probability, or one per class
    complete: bool = False  # whether only rows that miss no value are answered: the worlds of others are unknown

    @classmethod
    def of(cls, candidates: Sequence[Candidate], columns: Sequence[str]) -> Self:
        """Return candidates that are asked one after the other."""
        asked = [Predictor.of(one.model, list(columns), None, None) for one in candidates]
        reads = tuple(dict.fromkeys(name for predictor in asked for name in predictor.inputs))
        return cls(tuple(candidates), reads, lambda frame: np.stack([one(frame) for one in asked], axis=1))

    def flat(self, frame: pd.DataFrame) -> Array:  # (n, candidates q)
        """Return the answers of all candidates side by side."""
        return self.along(frame).reshape(len(frame), -1)


_ROWS_OF_A_MODEL = 10_000  # by which mechanisms are told apart well enough; many times as many take minutes


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to train on, or to judge on."""

    problem: Problem  # on these rows
    network: CIPEstimator  # with the roles of the problem, not yet fitted
    learners: Mapping[str, Any]  # a Learner each; None is the network, a model that is fitted stays as it is
    seed: int
    kinds: Mapping[str, Any] = field(default_factory=dict)  # of labels, also of those that only other rows show
    _made: dict[str, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return what was made under a key, or make it."""
        if str(key) not in self._made:
            self._made[str(key)] = make()
        made: Made = self._made[str(key)]
        return made

    @cached_property
    def _estimate(self) -> tuple[EstimatedModel | None, str]:
        table = self.problem.complete.astype(dict(self.kinds))
        if len(table) > _ROWS_OF_A_MODEL:
            table = table.sample(_ROWS_OF_A_MODEL, random_state=self.seed)
        try:
            return fit_scm(self.problem.graph, table, random_state=self.seed), ""
        except CiplearnError as refusal:
            return None, str(refusal)

    @property
    def scm(self) -> EstimatedModel | None:
        """A causal model of these rows; None where none can be estimated."""
        return self._estimate[0]

    @property
    def refusal(self) -> str:
        """Why there is none."""
        return self._estimate[1]

    def nodes_that_matter(self, scm: EstimatedModel) -> tuple[str, ...]:
        """Return the nodes through which the protected variables reach an input."""
        return scm.between(self.problem.protected, self.problem.inputs)

    def prepared(self, *, penalised: bool = True, **settings: Any) -> Prepared:
        """Return the rows prepared for training; penalties are prepared where one will be trained with."""

        def make() -> Prepared:
            network = clone(self.network).set_params(random_state=self.seed, on_violation="warn", **settings)
            # A graph that does not certify the statement leaves other routes open, and a note says so.
            with warnings.catch_warnings(action="ignore", category=NotCertifiedWarning):
                return prepare(network, self.problem.X, self.problem.y, penalised=penalised)

        return self.once(("prepared", penalised, sorted(settings.items(), key=str)), make)

    def base(self, learner: str, inputs: Sequence[str] | None = None) -> Any:
        """Return a predictor without a constraint, trained once."""
        how = self.learners.get(learner)  # a line joins two networks whatever else learns
        if how is not None and not isinstance(how, Learner):
            return how  # trained elsewhere
        settings = ({} if how is None else {"learner": how}) | ({} if inputs is None else {"inputs": list(inputs)})
        return self.once(("base", learner, inputs), lambda: self.prepared(penalised=False, **settings).trained(0.0))


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
    """One way to an invariant predictor."""

    name: ClassVar[str]  # as it is called in options and results
    rests_on: ClassVar[str]  # what has to be right for it to work
    # How a model came about, in a sentence; {gamma}, {penalty} and {strength} stand for those of the model.
    how: ClassVar[str]
    # Of routes that rest on no estimated causal model the first is taken where none can judge; others come after them.
    standing: ClassVar[int | None] = None

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


@dataclass(frozen=True)
class PenalisedRoute(Route):
    """A penalty in training, at one gamma after the other."""

    gammas: tuple[float, ...]

    @classmethod
    def at(cls, gammas: Sequence[float], shares: Sequence[float]) -> Self:
        """Take the gammas."""
        return cls(tuple(gammas))

    def trainings(self, learners: int) -> int:
        """Return the steps."""
        return len(self.gammas)

    def along(self, walk: Walk, name: str, **settings: Any) -> Family:
        """Train networks from weak to strong penalties, as far as it is worth it."""

        def trained(gamma: float, part: Part) -> Any:
            return self.trained(part.prepared(**settings).trained(gamma))

        candidates: list[Candidate] = []
        for place, gamma in enumerate(sorted(self.gammas)):
            make = partial(trained, gamma)
            one = Candidate(f"{name}, gamma {gamma:g}", self.name, self.rests_on, make(walk.part), make, gamma=gamma)
            candidates.append(one)
            walk.step(1)
            if not walk.goes_on(one):
                walk.step(len(self.gammas) - place - 1)
                break
        return Family.of(candidates, walk.part.problem.X.columns)
