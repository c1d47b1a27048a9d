"""`Report`: everything that the page says, in data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list
from ciplearn.evaluation import Audit
from ciplearn.evaluation.predictors import Predictor
from ciplearn.learning import Frontier
from ciplearn.report.charts import Dot
from ciplearn.report.groups import Affected, Group, most_affected, scores_by_group
from ciplearn.report.wording import short

# Columns of a row that are shown beside the protected ones.
_SHOWN_COLUMNS = 5


@dataclass(frozen=True, eq=False)
class Report:
    """What an audit has found, arranged for a page.

    Parameters
    ----------
    audit : Audit
    model
        The predictor that was audited.
    rows : DataFrame
        The rows that it was audited on, outcome included.
    title : str
    frontier : Frontier, optional
        The gammas that were tried: ``loss``, ``score``, ``penalty``, and ``vcf`` where it was measured.
    chosen : float, optional
        The gamma of the model.
    baselines : mapping of name to (vcf, loss), optional
        Predictors to compare with.
    rule : str
        How gamma was chosen, in a sentence.
    penalty : str
        The name of the penalty.
    groups : sequence of str, optional
        Columns by which scores are shown; the protected ones by default.
    about_rows : str
        Which rows these are.
    settings : mapping of command to options
        What to repeat it with.
    """

    audit: Audit
    model: Any
    rows: pd.DataFrame
    title: str
    frontier: Frontier | None = None
    chosen: float | None = None
    baselines: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    rule: str = ""
    penalty: str = "penalty"
    groups: Sequence[str] | None = None
    about_rows: str = ""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        absent = [name for name in self.groups or () if name not in self.rows.columns]
        if absent:
            raise InputError(
                f"Groups were asked for by {absent[0]!r}, which is no column of the rows; name one of "
                f"{', '.join(map(str, self.rows.columns))}."
            )

    def to_html(self) -> str:
        """Return the whole page; it needs nothing from a network."""
        from ciplearn.report.page import render

        return render(self)

    @property
    def is_classifier(self) -> bool:
        """Whether scores are about labels."""
        return "accuracy" in self.audit.scores

    @property
    def answer(self) -> str:
        """What the predictor says, in words: the outcome, or the probability of a class."""
        outputs = list(self.audit.vcf.per_output)
        outcome = self.audit.verdict.outcome
        if not self.is_classifier:
            return outcome
        return (
            f"the probability of {outcome} = {outputs[0]}" if len(outputs) == 1 else f"the probabilities of {outcome}"
        )

    def summary(self) -> list[str]:
        """Say in a few sentences what was found."""
        vcf, verdict = self.audit.vcf, self.audit.verdict
        who = as_list(vcf.protected)
        typical = float(np.sqrt(vcf.value))
        source = "by an estimated causal model" if vcf.model_based else "under the causal model given"
        said = [
            f"Had {who} been different, the same person's prediction of {self.answer} would typically have moved by "
            f"{short(typical)} ({source}; VCF {short(vcf.value)})."
        ]
        said += self._against_free()
        name, value = next(iter(self.scores().items()))
        said.append(f"On the audited rows the predictor's {name} is {value}.")
        if not self.audit.test.is_judged:
            return [*said, str(self.audit.test)]
        tells = "still tells of" if self.audit.test.rejects else "shows no sign of telling of"
        given = verdict.independence.given
        beyond = f" once {as_list(given)} {'are' if len(given) > 1 else 'is'} known" if given else ""
        right, p_value = as_list(verdict.independence.right), short(self.audit.test.p_value)
        said.append(f"The prediction {tells} {right}{beyond} (p = {p_value}).")
        return said

    def _against_free(self) -> list[str]:
        table = self.trials()
        if table is None or "vcf" not in table or 0.0 not in set(table["gamma"]) or not self.chosen:
            return []
        known = table.set_index("gamma")
        if self.chosen not in known.index or not known["vcf"].loc[0.0] > 0:
            return []
        free, used = known.loc[0.0], known.loc[self.chosen]
        score = "accuracy" if self.is_classifier else "R²"
        return [
            f"The penalty brings the VCF down to {used['vcf'] / free['vcf']:.0%} of what it is without, and {score} "
            f"from {free['score']:.3f} to {used['score']:.3f} (trainings on the same rows, judged on others)."
        ]

    def scores(self) -> dict[str, str]:
        """Names and values of the predictive scores, the more telling first."""
        names = {"accuracy": "accuracy", "r2": "R²", "log_loss": "log loss", "mse": "mean squared error"}
        found = self.audit.scores
        return {words: short(found[key]) for key, words in names.items() if key in found and not np.isnan(found[key])}

    def trials(self) -> pd.DataFrame | None:
        """One row a gamma, means over seeds; None where nothing was compared."""
        if self.frontier is None or len(self.frontier.points) < 2:
            return None
        table = self.frontier.summary()
        return table[["gamma", *(name for name in self.frontier.measures)]]

    def dots(self, x: str, y: str) -> list[Dot]:
        """The trials as points of a chart."""
        table = self.trials()
        if table is None or x not in table or y not in table:
            return []
        nearest = None
        if self.chosen is not None:
            nearest = table["gamma"].iloc[(table["gamma"] - self.chosen).abs().argmin()]
        return [Dot(row[x], row[y], row["gamma"], row["gamma"] == nearest) for row in table.to_dict(orient="records")]

    def agreement(self) -> float | None:
        """Rank correlation of penalty and VCF over the trials; None for fewer than three or for ties only."""
        table = self.trials()
        if table is None or "vcf" not in table or "penalty" not in table or len(table) < 3:
            return None
        if table["vcf"].nunique() < 2 or table["penalty"].nunique() < 2:
            return None
        return float(spearmanr(table["penalty"], table["vcf"]).statistic)

    def group_scores(self) -> list[Group]:
        """Scores of each group."""
        columns = self.groups if self.groups is not None else self._columns(self.audit.verdict.protected)
        return scores_by_group(self._predictor, self.rows, self.audit.verdict.outcome, columns, self.audit.vcf)

    def affected(self) -> list[Affected]:
        """Rows whose prediction depends most on the protected variables."""
        verdict = self.audit.verdict
        others = [name for name in (*verdict.context, *verdict.inputs) if name not in verdict.protected]
        columns = self._columns(verdict.protected) + self._columns(dict.fromkeys(others))
        return most_affected(self._predictor, self.rows, columns[:_SHOWN_COLUMNS], self.audit.vcf)

    @property
    def _predictor(self) -> Predictor:
        """The model, asked as it was in the audit."""
        return Predictor(self.model, self.audit.method, self.audit.inputs)

    def _columns(self, nodes: Sequence[str] | Mapping[str, Any]) -> list[str]:
        return [column for column in self.audit.scm.columns(tuple(nodes)) if column in self.rows.columns]
