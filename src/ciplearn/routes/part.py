"""`Part`: some rows of a problem, and what is learnt from them when it is first asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sklearn.base import clone

from ciplearn._core.errors import CiplearnError, NotCertifiedWarning
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.learner import Learner
from ciplearn.estimators.preparation import Prepared, prepare
from ciplearn.estimators.problem import Problem
from ciplearn.scm import EstimatedModel, fit_scm

# Mechanisms are told apart well enough by so many rows, and many times as many take minutes.
_ROWS_OF_A_MODEL = 10_000


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to train on, or to judge on."""

    problem: Problem  # on these rows
    network: CIPEstimator  # with the roles of the problem, not yet fitted
    learners: Mapping[str, Any]  # a Learner each; None is the network, a model that is fitted stays as it is
    seed: int
    kinds: Mapping[str, Any] = field(default_factory=dict)  # of labels, also of those that only other rows show
    _made: dict[str, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made under a key, or make it."""
        if str(key) not in self._made:
            self._made[str(key)] = make()
        return self._made[str(key)]

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
            with warnings.catch_warnings():
                # A graph that does not certify the statement leaves other routes open, and a note says so.
                warnings.simplefilter("ignore", NotCertifiedWarning)
                return prepare(network, self.problem.X, self.problem.y, penalised=penalised)

        prepared: Prepared = self.once(("prepared", penalised, sorted(settings.items(), key=str)), make)
        return prepared

    def base(self, learner: str, inputs: Sequence[str] | None = None) -> Any:
        """Return a predictor without a constraint, trained once."""
        how = self.learners[learner]
        if how is not None and not isinstance(how, Learner):
            return how  # trained elsewhere
        settings = ({} if how is None else {"learner": how}) | ({} if inputs is None else {"inputs": list(inputs)})
        return self.once(("base", learner, inputs), lambda: self.prepared(penalised=False, **settings).trained(0.0))
