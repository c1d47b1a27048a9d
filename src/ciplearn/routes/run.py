"""`Run`: one comparison, from rows to measured candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as part_of
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from ciplearn._core.columns import holds_numbers
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import CRITERIA, Judged
from ciplearn.estimators.problem import Problem
from ciplearn.evaluation.conclusion import Limits
from ciplearn.evaluation.scores import Unit
from ciplearn.routes.goal import Field, Goal
from ciplearn.routes.judging import Judge, Measured, compared_levels
from ciplearn.routes.route import FREE, Candidate, Family, Part, Route, Walk
from ciplearn.scm import EstimatedModel

# From this share of the unconstrained predictor's relative VCF on, a route has only made all differences smaller.
_ONLY_SHRINKS = 0.95

_AUDITED = 500  # rows that an audit looks at, at most


@dataclass(eq=False)
class Run:
    """What the splits of one comparison share."""

    problem: Problem
    network: CIPEstimator
    learners: Mapping[str, Any]
    routes: Sequence[Route]
    goal: Goal
    seed: int
    verbose: Any
    splits: int
    candidates: dict[str, Candidate] = part_of(default_factory=dict)
    refused: dict[str, str] = part_of(default_factory=dict)
    notes: list[str] = part_of(default_factory=list)
    _parts: dict[bytes, Part] = part_of(default_factory=dict)
    _judges: list[Part] = part_of(default_factory=list)
    _trains: list[Part] = part_of(default_factory=list)

    def __post_init__(self) -> None:
        steps = self.splits * sum(route.trainings(len(self.learners)) for route in self.routes)
        if hasattr(self.verbose, "update"):
            self.bar = self.verbose
            self.bar.total = steps
        else:
            self.bar = tqdm(total=steps, disable=not self.verbose, unit="training")

    def part(self, rows: Any) -> Part:
        """Return some rows with all that was learnt from them already."""
        key = np.asarray(rows).tobytes()
        if key not in self._parts:
            seed = self.seed + len(self._parts)
            self._parts[key] = Part(self.problem.take(rows), self.network, self.learners, seed, self._kinds)
        return self._parts[key]

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        table = self.problem.table
        labels = [name for name in table.columns if not holds_numbers(table[name])]
        return {name: table[name].astype("category").dtype for name in labels}

    def on(self, train: Any, judge: Any) -> dict[str, Measured]:
        """Follow every route on some rows, and measure its candidates on others."""
        part, judging = self.part(train), self.part(judge)
        free: list[Judged] = []
        families: list[Family] = []

        def judged(model: Any) -> Judged:
            return Judged.of(model, judging.problem.X, judging.problem.y)

        def goes_on(candidate: Candidate) -> bool:
            return self.goal.goes_on(judged(candidate.model), free[0])

        def loss(model: Any) -> float:
            return CRITERIA["loss"](judged(model))

        walk = Walk(part, goes_on, loss, self.bar.update, self.refused, self.notes)
        for route in self.routes:
            families += route.families(walk)
            if not free:
                free.append(judged(families[0].candidates[0].model))
        self.candidates |= {one.name: one for family in families for one in family.candidates}
        self._trains.append(part)
        self._judges.append(judging)
        # The same protected values on every part: those of all rows.
        values = compared_levels(self.problem, judging.scm) if self.goal.needs_effects else {}
        return Judge(judging, self.limit if self.goal.needs_effects else None, values).measured(families)

    def field(self, measured: Mapping[str, Measured], audited: int | None) -> Field:
        """Put the candidates side by side; say which only shrink, and which the goal allows."""
        free = [name for name in measured if self.candidates[name].kind == FREE]
        best = min(free, key=lambda name: CRITERIA["loss"](measured[name].judged))
        table = pd.DataFrame([self._row(name, one) for name, one in measured.items()])
        table = table.set_index("name", drop=False).rename_axis(None)
        smaller = (table["vcf"] < table.loc[best, "vcf"]) & (table["kind"] != FREE)
        alike = table["relative"] >= _ONLY_SHRINKS * table.loc[best, "relative"]
        table = table.assign(shrinks=smaller & alike, strict=table["strength"] == np.inf)
        rows = audited or min(_AUDITED, max(20, len(self.problem.table) // 4))
        unit = Unit(self.problem.is_classification, self._deviation)
        standing = {route.name: route.standing for route in self.routes if route.standing is not None}
        field = Field(table, measured, best, unit, self.limit, rows, standing)
        if self.goal.needs_effects:
            effects, moved = zip(*map(field.ends, table.index), strict=True)
            table = table.assign(effect_end=effects, moved_end=moved)
        table = table.assign(allowed=self.goal.allows(field))
        kept = [
            "yes" if allowed else ": ".join(filter(None, ("no", self.goal.broken(field, name))))
            for name, allowed in table["allowed"].items()
        ]
        return replace(field, table=table.assign(keeps=kept))

    def _row(self, name: str, one: Measured) -> dict[str, Any]:
        criteria = ["loss", "score", getattr(self.goal, "criterion", "loss")]
        criteria += ["auc"] if self.problem.is_classification else []
        row = self.candidates[name].about() | {"vcf": one.vcf, "relative": one.relative}
        row |= {measure: CRITERIA[measure](one.judged) for measure in dict.fromkeys(criteria)}
        if self.goal.needs_effects:
            # Of a vector no two values are compared: its effect is the typical difference.
            effects = [pair.effect for pair in one.pairs] or [math.sqrt(2 * max(one.vcf, 0.0))]
            moved = max((pair.moved for pair in one.pairs), default=math.nan)
            row |= {"effect": max(effects, key=abs), "moved": moved}
        return row

    @property
    def _deviation(self) -> float:
        return 1.0 if self.problem.is_classification else float(np.asarray(self.problem.y, dtype=float).std())

    @property
    def limit(self) -> float:
        """How far a prediction may move, in the outcome's unit."""
        limits = getattr(self.goal, "limits", Limits())
        return float(limits.effect(probability=self.problem.is_classification, deviation=self._deviation))

    def refusals(self) -> tuple[str, ...]:
        """Return why routes are not offered, and where nothing could judge."""
        silent = [part for part in self._judges if part.scm is None]
        where = f"In {len(silent)} of {len(self._judges)} folds: " if len(silent) < len(self._judges) else ""
        said = [
            f"{where}No causal model could be estimated, so VCF is not judged: {part.refusal}" for part in silent[:1]
        ]
        return (*self.refused.values(), *said)

    def causal_models(self) -> tuple[EstimatedModel | None, EstimatedModel | None]:
        """Return the last causal model of rows that trained, where one was asked for, and of rows that judged."""
        judged = [part.scm for part in self._judges if part.scm is not None]
        last = self._trains[-1]
        return last.scm if "_estimate" in vars(last) else None, judged[-1] if judged else None
