"""The paper's way to ask: what may be lost of what an unconstrained predictor explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ciplearn.estimators.criteria import Allowance, Judged
from ciplearn.routes.goal import Choice, Field, Goal
from ciplearn.routes.route import BASELINE, FREE

_CLEARLY = 0.9  # a route that rests on more has to be better by more than this share of VCF
_NEXT_TO_NOTHING = 0.01  # below this share of the unconstrained predictor's VCF, less is not worth a loss
_FAR_BEYOND = 3.0  # what is lost, as a multiple of the tolerance, beyond which a route is followed no further

_NOTHING_TO_LOSE = (
    "Even without any penalty the predictor is no better than a constant, so there is nothing to keep; add inputs that "
    "tell the outcome, or rows."
)


@dataclass(frozen=True)
class Tolerance(Goal):
    """The predictor that varies least among those that lose at most a share of what is explained, by a criterion.

    Examples
    --------
    >>> from ciplearn.routes import Tolerance
    >>> Tolerance(0.1)
    Tolerance(tolerance=0.1, criterion='loss')
    """

    tolerance: float
    criterion: str = "loss"  # a key of `CRITERIA`

    def goes_on(self, judged: Judged, free: Judged) -> bool:
        """Follow a route while the tolerance is in sight."""
        return Allowance(self.criterion, _FAR_BEYOND * self.tolerance, free).excess(judged) <= 0

    def _allowance(self, field: Field) -> Allowance:
        routes = set(field.table["kind"]) - {FREE, BASELINE}
        return Allowance(self.criterion, self.tolerance, field.measured[field.free].judged, max(1, len(routes)))

    def allows(self, field: Field) -> pd.Series:
        """Keep candidates that lose little enough, beyond chance."""
        allowance = self._allowance(field)
        free, told = field.table["kind"] == FREE, allowance.explains_something
        kept = {name: free[name] or (told and allowance.allows(one.judged)) for name, one in field.measured.items()}
        return pd.Series(kept)

    def pick(self, field: Field) -> Choice:
        """Take what varies least; what rests on an estimated model has to be clearly better."""
        table, allowance = field.table, self._allowance(field)
        if not allowance.explains_something:
            return Choice(field.free, False, _NOTHING_TO_LOSE)
        name, reason = self._least(field)
        notes = (*_better_baselines(table, name), *_just_beyond(field, name, allowance))
        return Choice(name, name != field.free, reason, notes)

    def _least(self, field: Field) -> tuple[str, str]:
        table = field.table.assign(name=field.table.index)
        free = table.loc[field.free]
        routes = table[~table["kind"].isin((FREE, BASELINE)) & table["allowed"]]
        allowed = routes[~routes["shrinks"]]
        if allowed.empty and len(routes):
            shrunk = routes.sort_values("vcf").iloc[0]["name"]
            return field.free, (
                f"Within a tolerance of {self.tolerance:.0%} routes only shrink all predictions alike ({shrunk}): they "
                "follow the protected variables as much as before. Raise the tolerance."
            )
        if allowed.empty:
            return field.free, (
                f"No route loses at most {self.tolerance:.0%} of what is explained; raise the tolerance, or choose a "
                "smaller context."
            )
        if allowed["vcf"].isna().all():
            order = allowed.assign(standing=allowed["kind"].map(field.standing))
            # Of one kind the strictest: what keeps the smallest share, or is penalised most.
            first = order.sort_values(["standing", "share", "gamma"], ascending=[True, True, False]).iloc[0]
            return first["name"], (
                f"Taken: {first['name']}, the strictest of its kind within the tolerance; no causal model could judge "
                f"VCF. It rests on {first['rests_on']}."
            )
        at_least = np.maximum(allowed["vcf"], _NEXT_TO_NOTHING * free["vcf"])
        order = allowed.assign(left=at_least).sort_values(["left", "loss"])
        best = order.iloc[0]
        safe = order[order["kind"].isin(field.standing)]
        if len(safe) and best["left"] > _CLEARLY * safe.iloc[0]["left"]:
            best = safe.iloc[0]
        left = best["vcf"] / free["vcf"] if free["vcf"] > 0 else 0.0
        return best["name"], (
            f"Taken: {best['name']}. Of the routes that lose at most {self.tolerance:.0%} of what is explained it "
            f"varies least with the protected variables: {_percent(left)} of the unconstrained predictor's VCF is left "
            f"(loss {best['loss']:.4g} against {free['loss']:.4g}). It rests on {best['rests_on']}."
        )


def _better_baselines(table: pd.DataFrame, chosen: str) -> list[str]:
    """Baselines that vary less than what was taken and are more accurate, or accurate enough: people should know."""
    taken = table.loc[chosen]
    rows = table[(table["kind"] == BASELINE) & (table["vcf"] < taken["vcf"])]
    return [
        f"{name} {'does better in both' if row['loss'] < taken['loss'] else 'varies less, at a larger loss'}: "
        f"loss {row['loss']:.4g} and VCF {row['vcf']:.3g}, against {taken['loss']:.4g} and {taken['vcf']:.3g}; a "
        "baseline is shown, not taken."
        for name, row in rows.iterrows()
        if row["allowed"] or row["loss"] < taken["loss"]
    ]


def _just_beyond(field: Field, chosen: str, allowance: Allowance) -> list[str]:
    """The candidate next to the tolerance that would clearly vary less, and the tolerance that would allow it."""
    table, taken = field.table, field.table.loc[chosen]
    routes = ~table["kind"].isin((FREE, BASELINE))
    beyond = table[routes & ~table["allowed"] & (table["vcf"] < _CLEARLY * taken["vcf"])]
    if beyond.empty:
        return []
    judged = {name: field.measured[str(name)].judged for name in beyond.index}
    nearest = min(judged, key=lambda name: allowance.bound(judged[name]))
    needed = allowance.needed(judged[nearest])
    if needed is None:
        return []
    keeps = allowance.excess(judged[nearest]) <= 0
    said = "keeps to the tolerance on these rows, though not beyond chance" if keeps else "is beyond the tolerance"
    return [
        f"{nearest} would leave {_percent(beyond.loc[nearest, 'vcf'] / table.loc[field.free, 'vcf'])} of VCF, but "
        f"{said}; a tolerance of {needed:g}{', or more rows,' if keeps else ''} would allow it."
    ]


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"
