"""Any finished predictor as one function from a frame to numbers, and what it was trained to keep and decides by."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import finite, names_of, one_of, share
from ciplearn._core.errors import FarOutsideWarning, InputError, InputTypeError
from ciplearn.causal import CausalGraph, Independence, Verdict
from ciplearn.causal.names import nodes_of
from ciplearn.evaluation.counterfactual_rows import row_chunks
from ciplearn.scm.kinds import Array

METHODS = ("predict_proba", "predict")
PROBABILITY_THRESHOLD = 0.5
_ROLES = ("outcome", "protected", "context", "inputs", "adjustment")
LARGEST = 1e75  # the variance of variances is a fourth power, which must be a number still


@dataclass(frozen=True)
class Predictor:
    """A model with the columns it reads and the method that is asked."""

    model: Any  # what the user passed
    method: str  # ``"predict"``, ``"predict_proba"`` or ``"call"``
    inputs: tuple[str, ...]  # the columns shown to the model

    @classmethod
    def of(cls, model: Any, columns: Sequence[str], inputs: Any, method: Any, ignored: Sequence[Any] = ()) -> Predictor:
        """Find out how to ask ``model``.

        A model with class probabilities is asked for these, any other for its prediction, a plain function is called.
        Without ``inputs`` the model sees the columns it remembers from its fit, or else all. Columns of the table in
        ``ignored`` have no counterfactual values, so no model may read them. A predictor is returned as it is.
        """
        if isinstance(model, cls):
            return model
        if method is not None:
            one_of(method, "method", METHODS)
        names = inputs if inputs is not None else _remembered(model, columns, ignored)
        if names is None:
            names = list(columns)
        else:
            names = list(dict.fromkeys(names_of(names, "inputs")))
            if inputs is not None and not names:
                raise InputError("inputs must name columns, got none; name at least one that the predictor reads.")
            missing = [name for name in names if name not in columns]
            if missing:
                raise InputError(
                    f"The predictor reads {missing[0]!r}, which is not among the columns "
                    f"{', '.join(map(str, columns))}; pass rows with that column, or other inputs."
                )
        if method is None:
            method = next((name for name in METHODS if callable(getattr(model, name, None))), None)
        elif not callable(getattr(model, method, None)):
            raise InputTypeError(f"The model has no {method}, got {type(model).__name__}; pass another method.")
        if isinstance(model, type):
            raise InputTypeError(f"The model is the class {model.__name__}; pass a fitted model, or a function.")
        if method is None and not callable(model):
            raise InputTypeError(
                f"The model must have predict or predict_proba, or be a function of a frame, got "
                f"{type(model).__name__}; pass a fitted model."
            )
        return cls(model, method or "call", tuple(names))

    @classmethod
    def several(cls, model: Any, *more: Any) -> dict[str, Predictor]:
        """Read a mapping of names to models as `of` does; a model alone stands under the name ``"model"``."""
        models = model if isinstance(model, Mapping) else {"model": model}
        if not models:
            raise InputError("The mapping of models is empty; pass at least one model.")
        return {str(name): cls.of(each, *more) for name, each in models.items()}

    def raw(self, frame: pd.DataFrame) -> Array:  # (n,) or (n, q)
        """What the model says, labels as labels, with the number of rows checked."""
        # A frame of its own: what a predictor does to it must not reach the next one.
        shown = frame[list(self.inputs)]
        try:
            answer = self.model(shown) if self.method == "call" else getattr(self.model, self.method)(shown)
        except KeyError as error:
            if error.args and error.args[0] in self.inputs:
                raise
            raise InputError(
                f"The predictor failed for want of {error}, which is not among the columns it is shown, "
                f"{', '.join(map(str, self.inputs))}; pass rows with that column, or other inputs."
            ) from error
        if isinstance(answer, list) and answer and hasattr(answer[0], "shape"):
            why = "The predictor returned a list of arrays, one per output"
            raise InputTypeError(f"{why}; wrap it in a function that returns one array.")
        array = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)
        if array.ndim not in (1, 2) or array.shape[0] != len(frame):
            raise InputError(
                f"The predictor must return one prediction per row, but returned shape {array.shape} for {len(frame)} "
                "rows; return shape (rows,) or (rows, outputs)."
            )
        return array

    def in_blocks(self, frame: pd.DataFrame) -> Array:  # (n,) or (n, q)
        """What `raw` says, asked about so many rows at a time that a large table is never copied as a whole."""
        return np.concatenate([self.raw(frame.iloc[places]) for places in row_chunks(len(frame))])

    def __call__(self, frame: pd.DataFrame) -> Array:  # (n, q)
        """Return predictions for imagined rows as numbers, one column per output."""
        # What one causal model imagines, another one may hold for impossible; people have not asked about it.
        with warnings.catch_warnings(action="ignore", category=FarOutsideWarning):
            return self.numbers(self.raw(frame))

    def numbers(self, array: Array) -> Array:  # (n,) or (n, q) -> (n, q)
        """Read what `raw` said as numbers.

        The probabilities of two classes are one number: only that of the second class is kept.
        """
        array = finite_numbers(array, "The predictor")
        if array.ndim == 1:
            return array[:, None]
        return array[:, 1:] if self.method == "predict_proba" and array.shape[1] == 2 else array

    def outputs(self, q: int) -> tuple[str, ...]:
        """Names for q outputs: classes where they are known."""
        classes = getattr(self.model, "classes_", None)
        if self.method == "predict_proba" and classes is not None and np.ndim(classes) == 1:
            names = tuple(str(label) for label in classes)
            names = names[1:] if len(names) == 2 and q == 1 else names
            if len(names) == q:
                return names
        return ("prediction",) if q == 1 else tuple(f"output {number}" for number in range(q))


def finite_numbers(array: Array, name: str) -> Array:
    """Return what a model said as numbers that have a variance."""
    if array.dtype.kind not in "biuf":
        why = f"{name} returned {array.dtype} values, which have no variance"
        raise InputTypeError(f"{why}; pass a model of numbers, or one with predict_proba (flip_rate takes labels).")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array.reshape(len(array), -1))).any(axis=1).sum())
        why = f"{name} returned NaN or infinity in {bad} of {len(array)} rows"
        raise InputError(f"{why}; it must be finite on every row, also on rows that are imagined.")
    if array.size and np.abs(array).max() > LARGEST:
        why = f"{name} returned numbers up to {np.abs(array).max():.3g}, which have no variance that a computer holds"
        raise InputError(f"{why}; count them in a larger unit.")
    return array


def _remembered(model: Any, columns: Sequence[str], ignored: Sequence[Any]) -> list[str] | None:
    """Return the columns that a trained model reads, or was fitted on; None where it does not say or they are absent.

    Our networks keep what they read in ``roles_``, baselines in ``inputs_``; both take tables with more columns.
    """
    trained = getattr(model, "best_estimator_", model)
    roles = getattr(trained, "roles_", None)
    keepers = ((roles, "inputs"), (trained, "inputs_"), (trained, "feature_names_in_"))
    names = next((list(kept) for keeper in keepers if (kept := getattr(*keeper, None)) is not None), [])
    strangers = [name for name in names if name in ignored]
    if strangers:
        why = f"The predictor reads {strangers[0]!r}, which the causal model does not know"
        raise InputError(f"{why}; add it to the graph, or pass inputs without it.")
    return names if names and all(name in columns for name in names) else None


@dataclass(frozen=True)
class Thresholds:
    """The two thresholds at which one model's decisions are compared: the one given, and the one of an equal rate."""

    given: float
    equal_rate: float


def thresholds_of(
    predictors: Mapping[str, Predictor], answers: Mapping[str, Array], threshold: float | None, rate: float | None
) -> dict[str, Thresholds]:  # (n, q) each
    """Settle the thresholds of every model that decides; answers are those for rows as they are.

    A model decides if it gives the probability of the second of two classes, or one number where a threshold was named.
    The equal rate is the same for all models: by default the mean probability that the first of them gives, or for
    other numbers its share above the threshold.
    """
    threshold = None if threshold is None else finite(threshold, "threshold")
    rate = None if rate is None else share(rate, "rate")
    thresholds: dict[str, Thresholds] = {}
    for name, predictor in predictors.items():
        scores = answers[name]
        probability = predictor.method == "predict_proba" and scores.shape[1] == 1
        if scores.shape[1] != 1 and threshold is not None:
            why = f"A threshold decides on one number per row, but the predictor gives {scores.shape[1]}"
            raise InputError(f"{why}; pass threshold=None, or a function that returns one of them.")
        if not probability and threshold is None:
            continue
        given = PROBABILITY_THRESHOLD if threshold is None else threshold
        if rate is None:
            rate = float(scores.mean()) if probability else float((scores > given).mean())
        thresholds[name] = Thresholds(given, threshold_at(scores[:, 0], rate))
    return thresholds


def threshold_at(scores: Array, rate: float) -> float:  # (n,)
    """Return the smallest score that at most a share ``rate`` of the scores exceed."""
    # 0.7 of ten is seven, though 10 · (1 − 0.7) is above 3.
    above = math.floor(rate * len(scores) + 1e-9)
    return float(np.sort(scores)[max(0, len(scores) - above - 1)])


def verdict_on(model: Any, graph: CausalGraph, roles: dict[str, Any]) -> Verdict:
    """Return the verdict for roles that were named, or else the one that the model carries for this graph.

    Where the model carries none, or one on another graph, its roles are judged; where it has no roles that fit, those
    written in the graph's text.
    """
    if any(role is not None for role in roles.values()):
        return graph.criterion(**roles)
    trained = getattr(model, "best_estimator_", model)
    verdict = getattr(trained, "verdict_", None)
    if isinstance(verdict, Verdict):
        # Roles written in a source text do not count: an estimated model does not keep them.
        parts = ("nodes", "directed", "bidirected", "undirected", "latent")
        if all(getattr(verdict.graph, part) == getattr(graph, part) for part in parts):
            return verdict
        roles = {role: getattr(verdict, role) for role in _ROLES}
    elif hasattr(trained, "graph") and hasattr(trained, "protected"):
        columns = tuple(str(name) for name in getattr(trained, "feature_names_in_", ()))
        roles = {role: _nodes(getattr(trained, role, None), columns, graph, role) for role in _ROLES[1:]}
        roles["outcome"] = trained.outcome
    named = {node for names in roles.values() for node in ([names] if isinstance(names, str) else names or ())}
    return graph.criterion(**roles if named <= set(graph.nodes) else {})


def enforced_statement(model: Any) -> Independence | None:
    """Return the independence, about columns, that a model was trained to keep; None where it was not."""
    trained = getattr(model, "best_estimator_", model)
    penalised = (getattr(trained, "gamma_", None) or 0) > 0
    statement = getattr(trained, "independence_", None) if penalised else None
    return statement if isinstance(statement, Independence) else None


def _nodes(named: Any, columns: tuple[str, ...], graph: CausalGraph, role: str) -> tuple[str, ...] | None:
    """Return the nodes that names, or positions in the table the model was fitted on, stand for."""
    if named is None:
        return None
    entries = [named] if isinstance(named, str | Integral) else list(named)
    names = [columns[each] if isinstance(each, Integral) and each < len(columns) else str(each) for each in entries]
    return nodes_of(names, graph.nodes, columns, role)
