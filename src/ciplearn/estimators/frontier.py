"""`frontier`: train over gammas and seeds, stacked on a GPU or on processes, and gather what each costs and buys."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from tqdm import tqdm

from ciplearn._core.answers import digest_of
from ciplearn._core.arguments import distinct, mapping_of, non_negative, processes, several, whole
from ciplearn._core.errors import InputError, InputTypeError
from ciplearn._core.workers import Engine
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.criteria import Judged, loss, refuse_other_rows, rows_of, score, split_rows
from ciplearn.estimators.preparation import Prepared
from ciplearn.learning.frontier import Frontier, Point, append_points, held_sweep, read_sweep
from ciplearn.learning.invariance import Invariance

# Parameters by which the trainings of one sweep may differ.
_NO_MATTER = ("gamma", "random_state", "checkpoint", "device", "verbose")

_ALWAYS_MEASURED = ("loss", "score", "penalty")

DEFAULT_GAMMAS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


def frontier(
    model: Any,
    X: Any,
    y: Any,
    gammas: Iterable[float] = DEFAULT_GAMMAS,
    seeds: Iterable[int] = (0,),
    *,
    test: tuple[Any, Any] | None = None,
    test_fraction: float = 0.2,
    measures: Mapping[str, Callable[[Any], float]] | None = None,
    file: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    engine: Engine | None = None,
    verbose: bool = False,
) -> Frontier:
    """Train ``model`` at each gamma with each seed and measure it on held-out rows.

    Parameters
    ----------
    model : CIPRegressor or CIPClassifier
        With its roles; gamma and random_state are replaced.
    X, y
        Training rows; of these, ``test_fraction`` is held out unless ``test`` is given.
    gammas, seeds : iterable
    test : pair (X, y), optional
        Rows to measure on.
    measures : mapping of name to callable, optional
        More to measure, from the fitted model: for example
        ``{"vcf": lambda m: variance_of_counterfactuals(m, scm, rows, protected=["A"]).value}``.
    file : path, optional
        A CSV file to which each finished training is appended; those already in it are not repeated. It refuses another
        model, other rows and other measures; what functions compute is not looked into.
    n_jobs : int, optional
        Processes on CPU, -1 for all cores, on the backend of ``joblib.parallel_config``. On a CUDA device all gammas
        and seeds are one stacked network, on shared batches; gamma 0 then has the network of the other gammas.
    engine : Engine, optional
        Who trains instead: for example ``ciplearn.scale.RayEngine(workers=2)``, a task per gamma and seed.
    verbose : bool

    Examples
    --------
    >>> from ciplearn import CIPRegressor, datasets, frontier
    >>> people = datasets.applicants().sample(200, random_state=0)
    >>> y = people.pop("income")
    >>> model = CIPRegressor(protected=["sex", "age"], epochs=3)
    >>> frontier(model, people, y, gammas=[0, 1], seeds=[0]).table["gamma"].tolist()
    [0.0, 1.0]
    """
    if not isinstance(model, CIPEstimator):
        raise InputTypeError(f"A frontier is of a CIPRegressor or CIPClassifier, got {type(model).__name__}; pass one.")
    n_jobs = processes(n_jobs)
    gamma_list = distinct([non_negative(gamma, "gamma") for gamma in several(gammas, "gammas")], "gammas")
    seed_list = distinct([whole(seed, "Each seed", minimum=0) for seed in several(seeds, "seeds")], "seeds")
    if not gamma_list or not seed_list:
        raise InputError(f"A frontier needs gammas and seeds, got {len(gamma_list)} and {len(seed_list)}; name some.")
    if test is None:
        fit_rows, test_rows = split_rows(X, y, test_fraction, 0, y if is_classifier(model) else None)
        test = rows_of(X, y, test_rows)
        X, y = rows_of(X, y, fit_rows)
    elif not isinstance(test, tuple | list) or len(test) != 2:
        raise InputTypeError(f"test must be a pair (X, y), got {type(test).__name__}; pass both.")
    else:
        refuse_other_rows(*test)
    further = mapping_of(measures, "measures")
    if not all(isinstance(name, str) and callable(measure) for name, measure in further.items()):
        raise InputTypeError("measures must map names to functions of a fitted model; pass for example {'vcf': ...}.")
    for name in further:
        if name in ("gamma", "seed", "digest", *_ALWAYS_MEASURED) or name.endswith("_error"):
            raise InputError(f"measures names {name!r}, which is a column of every frontier; give it another name.")
    with contextlib.nullcontext() if file is None else held_sweep(file):
        digest, points = (None, []) if file is None else _points_in(file, model, (X, y, *test), list(further))
        done = {(point.gamma, point.seed): point for point in points}
        wanted = [(gamma, seed) for seed in seed_list for gamma in gamma_list]
        missing = [pair for pair in wanted if pair not in done]
        trained: Iterable[Point] = ()
        if missing:
            prepared = Prepared.of(model, X, y)
            trained = _Sweep(prepared, test, prepared.judge(*test), further).points(missing, n_jobs, engine, verbose)
        for point in tqdm(trained, total=len(missing), disable=not verbose, unit="fit"):
            done[point.gamma, point.seed] = point
            if file is not None:
                append_points(file, [point], list(point.measures), digest)
    return Frontier(tuple(done[pair] for pair in wanted))


def _points_in(
    file: str | os.PathLike[str], model: CIPEstimator, rows: tuple[Any, ...], measures: list[str]
) -> tuple[str | None, list[Point]]:
    """Return the digest to write with further trainings, and those that the file holds.

    A file from before digests gets none, and is trusted.
    """
    sweep = read_sweep(file)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _NO_MATTER}
    digest = digest_of(type(model), parameters, rows)
    if sweep.measures is not None:
        held, named = ([name for name in names if name not in _ALWAYS_MEASURED] for names in (sweep.measures, measures))
        if held != named:
            raise InputError(f"{file} holds the measures {held}, got {measures}; pass the same ones, or another file.")
        if sweep.digests is None:
            return None, sweep.points
        if sweep.digests - {digest}:
            raise InputError(f"{file} holds trainings of another model or on other rows; name another file.")
    return digest, sweep.points


@dataclass(frozen=True)
class _Sweep:
    prepared: Prepared
    test: tuple[Any, Any]
    judge: Invariance | None
    measures: dict[str, Any]

    def points(
        self, pairs: list[tuple[float, int]], n_jobs: int | None, engine: Engine | None, verbose: bool
    ) -> Iterable[Point]:
        """Train at each pair of gamma and seed: by an engine, stacked on a device, or on processes."""
        if engine is not None:
            return engine.each(self.trained, pairs)
        if self.prepared.can_stack and self.prepared.rows.device.type == "cuda":
            return map(self.measured, pairs, self.prepared.stacked(pairs, verbose=verbose))
        parallel: Any = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        return parallel(map(delayed(self.trained), pairs))

    def trained(self, pair: tuple[float, int]) -> Point:
        """Train once, on one thread: two threads on two busy cores are many times slower."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self.measured(pair, self.prepared.trained(pair[0], random_state=pair[1]))
        finally:
            torch.set_num_threads(threads)

    def measured(self, pair: tuple[float, int], fitted: Any) -> Point:
        judged = Judged.of(fitted, *self.test)
        values = {"loss": loss(judged), "score": score(judged)}
        if self.judge is not None:
            values["penalty"] = fitted.penalty_value(self.test[0], penalty=self.judge)
        for name, measure in self.measures.items():
            value = measure(fitted)
            try:
                values[name] = float(value)
            except (TypeError, ValueError, OverflowError):
                got = f"{value!r:.80}"
                raise InputTypeError(f"The measure {name!r} must return a number, got {got}; correct it.") from None
        return Point(*pair, values)
