"""The paper's route: dependence in the data is penalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ciplearn.estimators.preparation import INDEPENDENCE
from ciplearn.estimators.problem import statement_on_columns
from ciplearn.routes.route import Family, PenalisedRoute, Walk


@dataclass(frozen=True)
class IndependenceRoute(PenalisedRoute):
    """loss + gamma · ⟨K_Ŷ, Q⟩, certified by the graph or not offered.

    Where the context holds more than the protected variables, the weaker statement about these alone is tried too: it
    leaves more to predict from. The question, and what VCF is given, stay as they are.
    """

    name: ClassVar[str] = INDEPENDENCE
    rests_on: ClassVar[str] = "the graph alone"
    standing: ClassVar[int] = 1
    how: ClassVar[str] = (
        "Training adds gamma times a measure of the contrary ({penalty}) to the loss; here gamma = {gamma}."
    )

    def trainings(self, learners: int) -> int:
        """Return the steps for both statements."""
        return 2 * len(self.gammas)

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield networks trained with the penalty."""
        problem = walk.part.problem
        verdict = problem.verdict
        uncertified = f"The graph does not certify {verdict.independence}; enforced all the same."
        if verdict.holds or walk.part.network.on_violation == "warn":
            yield self.along(walk, "independence")
            # A fold says what the one before has said.
            walk.notes.extend([] if verdict.holds or uncertified in walk.notes else [uncertified])
        else:
            walk.refused[self.name] = "The independence route is not offered: the graph does not certify its statement."
        if not verdict.context:
            return
        alone = problem.graph.criterion(verdict.outcome, verdict.protected, [], verdict.inputs)
        if alone.holds:
            weaker = statement_on_columns(alone, tuple(problem.X.columns))
            yield self.along(walk, "independence of the protected alone", independence=weaker)
