"""Trainings that studies share, kept on disk as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from joblib import Parallel, delayed
from tqdm import tqdm

from ciplearn.causal import Independence
from ciplearn.estimators import frontier
from ciplearn.learning.frontier import Point, append_points, read_sweep
from reproduction.cases import OUTCOME, Case, Judge
from reproduction.fingerprints import of_function
from reproduction.methods import METHODS, Training, predictor
from reproduction.study import Conditions

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
    """Train both methods over gammas and seeds; one row per network.

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
        model = predictor(method, case, training, conditions.device, independence)
        found = frontier(
            model,
            case.train[case.inputs],
            case.train[OUTCOME],
            gammas,
            seeds,
            test=(case.test[case.inputs], case.test[OUTCOME]),
            measures={"hscic": judge.hscic, "vcf": judge.vcf},
            file=conditions.file(f"{name}-{method.split()[-1]}", (name, method, key, str(statement))),
            n_jobs=conditions.n_jobs,
            verbose=conditions.verbose,
        )
        tables.append(found.table.rename(columns={"loss": "mse", "score": "r2"}).assign(method=method))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


@dataclass(frozen=True, eq=False)
class BaselineTraining:
    """A baseline to be trained once per seed.

    Attributes
    ----------
    name : str
    key : object
        Says everything that the trainings depend on, beside the seed and the text of ``make``.
    case : Case
    judge : Judge
    make : callable
        Takes a seed and returns the untrained predictor.
    """

    name: str
    key: object
    case: Case
    judge: Judge
    make: Callable[[int], Any]

    def trained(self, seed: int) -> Point:
        """Train with one seed and measure."""
        # Two threads on two busy cores are many times slower than one.
        torch.set_num_threads(1)
        model = self.make(seed).fit(self.case.train[self.case.inputs], self.case.train[OUTCOME])
        return Point(0.0, seed, self.judge.measures(model))


def begin_fits(
    baselines: Sequence[BaselineTraining], seeds: Iterable[int], conditions: Conditions
) -> Callable[[], dict[str, pd.DataFrame]]:
    """Train baselines on processes; call what is returned for their tables: ``mse``, ``hscic`` and ``vcf`` per seed.

    Where a GPU trains the methods, processes begin at once and work beside it; on a CPU they wait until they are asked
    for.
    """
    seed_list = list(seeds)
    files = {
        baseline.name: conditions.file(baseline.name, (baseline.name, baseline.key, of_function(baseline.make)))
        for baseline in baselines
    }
    done = {(name, point.seed): point for name, file in files.items() for point in read_sweep(file).points}
    missing = [(baseline, seed) for baseline in baselines for seed in seed_list if (baseline.name, seed) not in done]
    beside_gpu = conditions.device == "cuda"
    running = _started(missing, max(1, conditions.n_jobs - 1)) if beside_gpu else None

    def finish() -> dict[str, pd.DataFrame]:
        jobs = running or _started(missing, conditions.n_jobs)
        for name, point in tqdm(jobs, total=len(missing), disable=not conditions.verbose, unit="fit"):
            done[name, point.seed] = point
            append_points(files[name], [point], _MEASURES)
        return {
            name: pd.DataFrame([{"seed": seed, **done[name, seed].measures} for seed in seed_list]) for name in files
        }

    return finish


def _started(missing: Sequence[tuple[BaselineTraining, int]], n_jobs: int) -> Iterable[tuple[str, Point]]:
    found: Iterable[tuple[str, Point]] = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_named)(baseline, seed) for baseline, seed in missing
    )
    return found


def _named(baseline: BaselineTraining, seed: int) -> tuple[str, Point]:
    return baseline.name, baseline.trained(seed)
