"""From a problem to a trained model, and the trace of gammas that were tried on the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from sklearn.base import clone
from tqdm import tqdm

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.numbers import non_negative
from ciplearn.cli.problem import Problem
from ciplearn.estimators import CIPClassifier, CIPRegressor
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.trials import Trials, measures_of
from ciplearn.kernels import Gaussian
from ciplearn.learning import Frontier
from ciplearn.penalties import CIRCE, HSCIC, HSIC, MMD, Penalty, ResidualHSCIC

# Ends of the search for gamma.
_LOW, _HIGH = 1e-3, 1e4

# Share of the training rows that judge a gamma.
_JUDGES = 0.2

# What may be lost where nothing was said: a tenth more squared error, or two points of accuracy.
DEFAULT_TOLERANCE = {"regression": 0.10, "classification": 0.02}

# Predictions are scaled to [0, 1], where differences of a tenth count.
_PREDICTION = Gaussian(0.1)
PENALTIES: dict[str, Callable[[], Penalty]] = {
    "residual-hscic": lambda: ResidualHSCIC(kernel=_PREDICTION),
    "hscic": lambda: HSCIC(kernel=_PREDICTION),
    "hscic-paper": HSCIC.paper,
    "circe": lambda: CIRCE(kernel=_PREDICTION),
    "hsic": lambda: HSIC(kernel=_PREDICTION),
    "mmd": lambda: MMD(kernel=_PREDICTION),
}


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes
    ----------
    gamma : float, optional
        A weight that is fixed; None searches for the largest within the tolerance.
    tolerance : float, optional
        What may be lost: a share of the loss, or a drop of the score.
    measure : str, optional
        ``"loss"`` or ``"score"``; by default the loss for regression and the score for classification.
    penalty : str, optional
        A key of `PENALTIES`.
    compare : bool
        With a fixed gamma, also train without a penalty, to see what it costs.
    refit : bool
        Train once more on all training rows. Without, the model is the very one that was judged.
    trials : int
        The largest number of gammas to try.
    network : mapping
        Arguments of the estimator: epochs, batch_size, hidden, ...
    """

    gamma: float | None = None
    tolerance: float | None = None
    measure: str | None = None
    penalty: str | None = None
    on_violation: str = "raise"
    compare: bool = True
    refit: bool = False
    trials: int = 9
    network: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trained:
    """What training has left.

    Attributes
    ----------
    model : CIPEstimator
    trials : mapping from gamma to CIPEstimator
        Trained on the rows that do not judge.
    trace : Frontier
        Loss, score and penalty of each trial on the judging rows; empty where nothing was compared.
    tolerance : float or None
        None where gamma was fixed.
    scores : mapping
        Of the model on held-out rows; empty where none were held out.
    """

    model: CIPEstimator
    trials: dict[float, CIPEstimator]
    trace: Frontier
    tolerance: float | None
    measure: str
    remark: str
    scores: dict[str, float]


def estimator(problem: Problem, recipe: Recipe) -> CIPEstimator:
    """Return the estimator, not yet trained."""
    wishes, verdict = problem.wishes, problem.verdict
    if recipe.on_violation not in ("raise", "warn"):
        raise InputError(f"--on-violation must be raise or warn, got {recipe.on_violation!r}; name one of these.")
    if not verdict.holds and recipe.on_violation == "raise":
        raise GraphError(
            f"The graph does not certify {verdict.independence}: {' '.join(verdict.reasons)} Change the roles "
            "(ciplearn check shows repairs), or pass --on-violation warn to enforce it all the same."
        )
    if recipe.penalty is not None and recipe.penalty not in PENALTIES:
        raise InputError(f"--penalty must be one of {', '.join(PENALTIES)}, got {recipe.penalty!r}; name one of these.")
    kind = CIPClassifier if problem.task == "classification" else CIPRegressor
    return kind(
        graph=wishes.graph,
        outcome=problem.outcome,
        protected=list(verdict.protected),
        context=list(verdict.context),
        inputs=list(verdict.inputs),
        adjustment=list(verdict.adjustment),
        penalty=_penalty(recipe.penalty, conditional=bool(verdict.independence.given)),
        # The paper prepares its penalty batch by batch.
        prepare_once=recipe.penalty != "hscic-paper",
        on_violation=recipe.on_violation,
        missing=wishes.missing,
        random_state=wishes.seed,
        **recipe.network,
    )


def _penalty(name: str | None, *, conditional: bool) -> Penalty | None:
    """Return the penalty of a name, or None for the estimator's own choice, whose kernel knows the outcome's spread."""
    own = "residual-hscic" if conditional else "hsic"
    return None if name in (None, own) else PENALTIES[name]()


def train(problem: Problem, recipe: Recipe) -> Trained:
    """Choose gamma, train, and score on the rows held out."""
    # Two threads on two busy cores are many times slower than one.
    torch.set_num_threads(1)
    base = estimator(problem, recipe)
    X, y = problem.training()
    measure = recipe.measure or ("score" if problem.task == "classification" else "loss")
    if measure not in ("loss", "score"):
        raise InputError(f"--measure must be loss or score, got {measure!r}; name one of these.")
    tolerance = recipe.tolerance
    if recipe.gamma is None and tolerance is None:
        tolerance = DEFAULT_TOLERANCE[problem.task] if measure != "loss" else DEFAULT_TOLERANCE["regression"]
    _check_outcome(problem, y)
    planned = recipe.trials + 1 if recipe.gamma is None else 2 * recipe.compare
    with warnings.catch_warnings():
        # Said once, before training, in one line.
        warnings.filterwarnings("ignore", message="The graph does not certify")
        # disable=None: quiet where nobody watches.
        with tqdm(total=planned, desc="choosing gamma", unit="training", disable=None) as bar:
            trials = Trials(base, X, y, validation_fraction=_JUDGES, random_state=problem.wishes.seed, bar=bar)
            gamma, remark = _chosen_gamma(trials, recipe, measure, tolerance)
        model = trials.models.get(gamma)
        if model is None or recipe.refit:
            model = clone(base).set_params(gamma=gamma, verbose=not bar.disable).fit(X, y)
            model.verbose = False
    held_X, held_y = problem.held_out()
    scores = measures_of(model, *_known(model, held_X, held_y)) if len(held_X) >= 20 else {}
    return Trained(model, trials.models, trials.frontier, tolerance, measure, remark, scores)


def _check_outcome(problem: Problem, y: pd.Series) -> None:
    if problem.task == "classification":
        counts = y.value_counts()
        if counts.min() < 2:
            raise InputError(
                f"The outcome {problem.outcome!r} is {counts.idxmin()!r} in a single training row; group rare "
                "labels, or pass more rows."
            )
    elif y.nunique() < 2:
        raise InputError(f"The outcome {problem.outcome!r} is constant among the training rows; pass more rows.")


def _chosen_gamma(trials: Trials, recipe: Recipe, measure: str, tolerance: float | None) -> tuple[float, str]:
    """Return the gamma to train with, and what to know about it."""
    if tolerance is not None and recipe.gamma is None:
        choice = trials.search(measure, tolerance, _LOW, _HIGH, recipe.trials)
        return choice.gamma, choice.remark
    gamma = non_negative(recipe.gamma, "gamma")
    for other in sorted({0.0, gamma}) if recipe.compare else ():
        trials.measured(other)
    return gamma, ""


def _known(model: CIPEstimator, X: pd.DataFrame, y: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """Leave out rows of a class that training has not seen: no probability was learnt for it."""
    if not isinstance(model, CIPClassifier):
        return X, y
    rows = y.isin(list(model.classes_))
    return X[rows], y[rows]
