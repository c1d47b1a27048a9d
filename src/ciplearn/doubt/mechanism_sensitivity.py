"""`mechanism_sensitivity`: the range of VCF over mechanisms that fit about equally well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ciplearn._core.arguments import first
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.rows import RandomState, as_seed
from ciplearn.causal.names import Names
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.scm.estimated_model import EstimatedModel


@dataclass(frozen=True, eq=False)
class MechanismSensitivity:
    """The answer of `mechanism_sensitivity`.

    Attributes
    ----------
    table : DataFrame
        ``node``, ``mechanism``, ``vcf`` and ``relative``; the first row is the model as chosen.
    ambiguities : tuple of str
        Sentences on nodes whose noise is known up to its sign or order only.
    late : int
        Mechanisms that were not asked about.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.doubt import mechanism_sensitivity
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> scm = fit_scm(world.graph, people, random_state=0)
    >>> span = mechanism_sensitivity(lambda frame: frame["hours"], scm, people, ["sex"], inputs=["hours"], n_points=30)
    >>> span.table["mechanism"].iloc[0]
    'as chosen'
    """

    table: pd.DataFrame
    ambiguities: tuple[str, ...]
    late: int = 0

    @property
    def unchanged(self) -> float:
        """VCF with the mechanisms that were chosen."""
        return float(self.table["vcf"].iloc[0])

    @property
    def interval(self) -> tuple[float, float]:
        """The smallest and largest VCF."""
        return float(self.table["vcf"].min()), float(self.table["vcf"].max())

    def __str__(self) -> str:
        (low, high), others = self.interval, len(self.table) - 1
        said = f"Over {others} other mechanisms that fit about as well, VCF lies between {low:.3g} and {high:.3g}."
        if not others and not self.late:
            said = f"No other mechanism fits about as well; VCF is {low:.3g}."
        if self.late:
            said += f" {self.late} more of them {'was' if self.late == 1 else 'were'} not asked about."
        return " ".join([said, *self.ambiguities])


def mechanism_sensitivity(
    model: Any,
    scm: EstimatedModel,
    table: pd.DataFrame,
    protected: Names,
    random_state: RandomState = 0,
    *,
    context: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    method: str | None = None,
    n_points: int = 300,
    n_interventions: int = 100,
    n_draws: int | None = 20,
    limit: int | None = None,
) -> MechanismSensitivity:
    """Exchange the mechanism of one descendant of A at a time for each other that predicts held-out rows as well.

    Parameters
    ----------
    model
        A finished predictor, as in `variance_of_counterfactuals`.
    scm : EstimatedModel
        Of `fit_scm`.
    table : DataFrame
    protected : name or list of names
    random_state : int, Generator, RandomState or None
    context, inputs, method, n_points, n_interventions, n_draws
        See `variance_of_counterfactuals`.
    limit : int, optional
        Ask about so many other mechanisms at most; how many are left out is said.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> from ciplearn.doubt import mechanism_sensitivity
    >>> world = datasets.applicants()
    >>> people = world.sample(200, random_state=0)
    >>> scm = fit_scm(world.graph, people, random_state=0)
    >>> span = mechanism_sensitivity(lambda frame: frame["hours"], scm, people, ["sex"], inputs=["hours"], n_points=30)
    >>> span.interval[0] <= span.interval[1]
    True
    """
    if not isinstance(scm, EstimatedModel):
        raise InputTypeError(
            f"scm must be a model of fit_scm, got {type(scm).__name__}; nothing is open in a known one."
        )
    seed = as_seed(random_state)
    variants = [("", "as chosen", scm)]
    tried = {fit.node for fit in scm.report.nodes if len(fit.alternatives) > 1}
    for node in scm.graph.topological_order():
        if node in scm.graph.descendants(protected) and node not in scm.graph.known(protected):
            if node in tried and node not in scm.choices:
                raise InputError(
                    f"The other mechanisms that were tried for {node} were not kept with the model's file; fit it anew "
                    "with fit_scm."
                )
            variants += [(node, name, other) for name, other in scm.variants(node).items()]
    rows: list[dict[str, Any]] = []
    asked = {"context": context, "inputs": inputs, "method": method, "n_draws": n_draws, "random_state": seed}
    asked |= {"n_points": n_points, "n_interventions": n_interventions}
    for node, name, variant in [variants[0], *first(variants[1:], limit)]:
        found = variance_of_counterfactuals(model, variant, table, protected, **asked)
        rows.append({"node": node, "mechanism": name, "vcf": found.value, "relative": found.relative})
    ambiguities = tuple(finding.sentence for finding in scm.ambiguities)
    return MechanismSensitivity(pd.DataFrame(rows), ambiguities, late=len(variants) - len(rows))
