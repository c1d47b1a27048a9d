"""The route in closed form: the smallest change of any fitted model that makes it invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ciplearn.evaluation.counterfactual_rows import row_chunks
from ciplearn.repairing import Repaired
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.flow import ground
from ciplearn.repairing.formula import BlindEnd, Engine, Formula, parts_of
from ciplearn.repairing.measured import CORRECTION, FORMULA, Curve
from ciplearn.repairing.worlds import Worlds
from ciplearn.routes.counterfactual import trusted_models
from ciplearn.routes.route import Array, Candidate, Family, Part, Route, Walk, blindly

REPAIR, BLIND = "repair", "blind formula"

# f is linear in t = 1 / (1 + γ) where A has no causes: even steps of t, finer near the strict end.
_STEPS = 16
STRENGTHS = (*((1 - step / _STEPS) ** -2.0 - 1 for step in range(1, _STEPS)), np.inf)

# Of which the blind share grows by twentieths.
_BLIND_STRENGTHS = (*(Formula.sees_to / (1 - step / 20) for step in range(1, 20)), np.inf)

_DONE = {FORMULA: "repaired", CORRECTION: "corrected", BLIND: "repaired blindly"}

# Rows by which it is found out whether they determine their noise, and rows that strengths are measured on.
_TRIED, _MEASURED = 50, 500


@dataclass(frozen=True)
class RepairRoute(Route):
    """f = (w m + γ f̄) / (w + γ) for the model m of each learner, on worlds that are imagined once for all of them.

    Where rows leave open the noise behind them, two more are tried with the best learner: a boosted correction of its
    model, and the formula with that noise drawn blindly, as if the row said nothing of it. That one keeps strict limits
    which no function of a label that A moves can keep.
    """

    name: ClassVar[str] = REPAIR
    rests_on: ClassVar[str] = "the graph and an estimated causal model"
    how: ClassVar[str] = (
        "A model was trained for accuracy alone and then changed as little as possible, in closed form, so that it "
        "says the same in every world; here {strength}."
    )
    strengths: tuple[float, ...] = STRENGTHS

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield all learners' models along the strengths."""
        part = walk.part
        if part.scm is None:
            walk.refused[self.name] = f"No causal model could be estimated, so nothing is repaired: {part.refusal}"
            return
        if not trusted_models(walk, part.scm, self.name, "Repair"):
            return
        worlds = _worlds(part)
        learners = list(part.learners)
        yield Family(
            self._candidates(part, learners, FORMULA, self.strengths),
            worlds.columns,
            self._along(part, learners, worlds),
            complete=True,
        )
        walk.step(len(learners))
        if worlds.units(part.problem.complete.head(_TRIED)).exact:
            return
        best = min(learners, key=lambda learner: walk.loss(part.base(learner)))
        for engine, strengths in ((CORRECTION, self.strengths), (BLIND, _BLIND_STRENGTHS)):
            along = partial(_repaired(part, best, engine).along, strengths=strengths)
            yield Family(self._candidates(part, [best], engine, strengths), worlds.columns, along, complete=True)

    def _candidates(
        self, part: Part, learners: list[str], engine: str, strengths: tuple[float, ...]
    ) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(
                f"{learner}, {_DONE[engine]} at {'full strength' if np.isinf(gamma) else f'strength {gamma:.3g}'}",
                self.name,
                self.rests_on,
                _repaired(part, learner, engine).at(gamma),
                self._maker(learner, engine, gamma),
                blindly(learner) if engine == BLIND else learner,
                strength=gamma,
            )
            for learner in learners
            for gamma in strengths
        )

    def _maker(self, learner: str, engine: str, gamma: float) -> Callable[[Part], Any]:
        return lambda part: _repaired(part, learner, engine).at(gamma)

    def _along(self, part: Part, learners: list[str], worlds: Worlds) -> Callable[[pd.DataFrame], Array]:
        models = [_asked(part, learner) for learner in learners]

        def along(frame: pd.DataFrame) -> Array:  # (n, learners strengths, q)
            rows = worlds.checked(frame)
            blocks = []
            for places in row_chunks(len(rows), 1 + worlds.calls):
                some = rows.iloc[places]
                each = parts_of(models, worlds, some, worlds.units(some))
                blocks.append(np.stack([parts.at(gamma) for parts in each for gamma in self.strengths], axis=1))
            return np.concatenate(blocks)

        return along


def _worlds(part: Part) -> Worlds:
    """The worlds of rows under the causal model of a part, the same for every learner."""
    problem = part.problem

    def make() -> Worlds:
        return ground(
            part.base(next(iter(part.learners))),
            problem.complete,
            problem.graph,
            problem.outcome,
            list(problem.protected),
            # What reads hidden nodes off a whole row reads the outcome, too; the part that is needed does without.
            None if problem.graph.latent else part.scm,
            list(problem.inputs),
            np.random.default_rng(part.seed),
        )[1]

    worlds: Worlds = part.once("worlds", make)
    return worlds


def _asked(part: Part, learner: str) -> Asked:
    problem = part.problem
    asked: Asked = part.once(
        ("asked", learner),
        lambda: Asked.of(part.base(learner), problem.complete, problem.outcome, (), list(problem.inputs)),
    )
    return asked


def _repaired(part: Part, learner: str, engine: str) -> Repaired:
    table = part.problem.complete

    def make() -> Repaired:
        asked, worlds = _asked(part, learner), _worlds(part)
        generator = np.random.default_rng(part.seed)
        chosen: Engine = Formula(asked, worlds)
        if engine == CORRECTION:
            chosen = Correction.of(asked, worlds, table, generator)
        elif engine == BLIND:
            chosen = BlindEnd(chosen, worlds)
        rests_on = CORRECTION if engine == CORRECTION else FORMULA
        some = table.iloc[np.sort(generator.permutation(len(table))[:_MEASURED])]
        return Repaired(asked, worlds, chosen, Curve.of(chosen, worlds, some), part.problem.outcome, rests_on=rests_on)

    repaired: Repaired = part.once(("repaired", learner, engine), make)
    return repaired
