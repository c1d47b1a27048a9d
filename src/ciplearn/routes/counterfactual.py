"""The route over imagined rows: differences between worlds are penalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ciplearn.estimators.preparation import COUNTERFACTUAL
from ciplearn.routes.judging import MOST_TIES
from ciplearn.routes.route import Family, PenalisedRoute, Walk
from ciplearn.scm import EstimatedModel


@dataclass(frozen=True)
class CounterfactualRoute(PenalisedRoute):
    """loss + gamma · variance of the predictions for a row over the worlds that a causal model imagines."""

    name: ClassVar[str] = COUNTERFACTUAL
    rests_on: ClassVar[str] = "the graph and an estimated causal model"
    how: ClassVar[str] = (
        "Training adds gamma times the variance of predictions over imagined rows to the loss; here gamma = {gamma}."
    )

    def families(self, walk: Walk) -> Iterator[Family]:
        """Yield networks trained on imagined rows, unless data leave open what would be imagined."""
        scm = walk.part.scm
        if scm is None:
            walk.refused[self.name] = (
                f"No causal model could be estimated, so the counterfactual route is not offered: {walk.part.refusal}"
            )
            return
        models = trusted_models(walk, scm, self.name, "The counterfactual route")
        if models:
            worlds = models if len(models) > 1 else models[0]
            yield self.along(walk, "counterfactual", counterfactuals=worlds)


def trusted_models(walk: Walk, scm: EstimatedModel, route: str, called: str) -> list[EstimatedModel]:
    """Return a causal model with those that data cannot tell from it; none where they cannot even be listed."""
    matters = walk.part.nodes_that_matter(scm)
    open_about = [fit for fit in scm.report.nodes if fit.node in matters and fit.ambiguity]
    beyond = [fit for fit in open_about if fit.tie is None]
    if beyond:
        walk.refused[route] = f"{called} is not offered: {beyond[0].ambiguity}"
        return []
    ties = scm.ties(matters)[:MOST_TIES]
    if ties:
        walk.notes.append(f"{open_about[0].ambiguity} {called} is trained and judged against the worst of both.")
    walk.notes.extend(finding.sentence for finding in scm.misfits if finding.node in matters)
    return [scm, *ties]
