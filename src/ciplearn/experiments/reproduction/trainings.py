"""Trainings that studies share, kept on disk as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import torch
from joblib import Parallel, delayed
from tqdm import tqdm

from ciplearn.causal import Independence
from ciplearn.estimators import frontier
from ciplearn.experiments.reproduction.cases import OUTCOME, Case, Judge
from ciplearn.experiments.reproduction.methods import METHODS, Training, predictor
from ciplearn.experiments.reproduction.study import Conditions
from ciplearn.learning.frontier import Point, append_points, read_points

COLUMNS = ("method", "gamma", "seed", "mse", "r2", "hscic", "vcf", "penalty")

# Numbers in a file of fits, in this order.
_MEASURES = ("mse", "hscic", "vcf")


def frontiers(
    name: str,
    key: object,
    case: Case,
    judge: Judge,
    gammas: Iterable[float],
    seeds: Iterable[int],
    training: Training,
    conditions: Conditions,
    independence: Independence | None = None,
) -> pd.DataFrame:
    """Train both methods over gammas and seeds; one row a network.

    Parameters
    ----------
    name, key
        Of the files that finished trainings are appended to; ``key`` says everything they depend on.
    case, judge
    gammas, seeds, training
    conditions : Conditions
    independence : Independence, optional
        Where it is not what the graph asks for.

    Returns
    -------
    DataFrame
        With `COLUMNS`; ``hscic`` is the paper's criterion, ``penalty`` the method's own, both on test rows.
    """
    statement = independence or case.independence()
    tables = []
    for method in METHODS:
        model = predictor(method, statement, case.inputs, training, conditions.device)
        found = frontier(
            model,
            case.train[case.inputs],
            case.train[OUTCOME],
            gammas,
            seeds,
            test=(case.test[case.inputs], case.test[OUTCOME]),
            measures={"hscic": judge.hscic, "vcf": judge.vcf},
            file=conditions.file(f"{name}-{method.split()[-1]}", (name, method, key)),
            n_jobs=conditions.jobs,
            progress=conditions.progress,
        )
        tables.append(found.table.rename(columns={"loss": "mse", "score": "r2"}).assign(method=method))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def fits(
    name: str,
    key: object,
    case: Case,
    judge: Judge,
    make: Callable[[int], Any],
    seeds: Iterable[int],
    conditions: Conditions,
) -> pd.DataFrame:
    """Train ``make(seed)`` for each seed, on processes; one row a seed with ``mse``, ``hscic`` and ``vcf``."""
    file = conditions.file(name, (name, key))
    done = {point.seed: point for point in read_points(file)}
    seed_list = list(seeds)
    missing = [seed for seed in seed_list if seed not in done]
    jobs = Parallel(n_jobs=conditions.jobs, return_as="generator_unordered")(
        delayed(_fitted)(make, seed, case, judge) for seed in missing
    )
    for point in tqdm(jobs, total=len(missing), disable=not conditions.progress, desc=name, unit="fit"):
        done[point.seed] = point
        append_points(file, [point], _MEASURES)
    rows = [{"seed": seed, **done[seed].measures} for seed in seed_list]
    return pd.DataFrame(rows)


def _fitted(make: Callable[[int], Any], seed: int, case: Case, judge: Judge) -> Point:
    # Two threads on two busy cores are many times slower than one.
    torch.set_num_threads(1)
    model = make(seed).fit(case.train[case.inputs], case.train[OUTCOME])
    return Point(0.0, seed, judge.measures(model))
