"""What all baselines share: columns of nodes, task, and a network or another estimator on what it is let to see."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils import _safe_indexing as take
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ciplearn._core.arguments import check_flags, one_of
from ciplearn._core.columns import CLASSIFICATION, REGRESSION, check_cells, task_of
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import FarOutsideWarning, InputError, UnseenLevelsWarning
from ciplearn._core.rows import alike, as_seed
from ciplearn.baselines.fitted_models import NetworkRegression, TableEstimator, task_of_estimator
from ciplearn.causal import CausalGraph
from ciplearn.causal.graph import read_question
from ciplearn.causal.names import node_of
from ciplearn.estimators import CIPClassifier, CIPRegressor
from ciplearn.estimators.base import CIPEstimator, EstimatorKeywords
from ciplearn.estimators.learner import NETWORK_KEYWORDS
from ciplearn.estimators.problem import checked_graph, columns_of_nodes, named_columns, named_nodes, refuse_outcome
from ciplearn.estimators.tables import read_table, rows_to_predict, same_rows, warn_of_unseen, without_missing

TASKS = ("auto", REGRESSION, CLASSIFICATION)
_ROWS_AT_ONCE = 65_536  # rows whose views are held at a time


@dataclass(eq=False, repr=False)
class Baseline(EstimatorKeywords, ABC):
    """What `CIPRegressor` and `CIPClassifier` are compared with, under their roles and with their network.

    Parameters
    ----------
    graph : CausalGraph, optional
        Says what descends from the protected variables; ``outcome`` names the node that y holds.
    protected, inputs : nodes, columns or positions
        A, and what the baseline may use; by default every observed node but the outcome, without a graph every column.
        A node ``A`` may be held by columns ``A[0]``, ``A[1]``, ...
    context : nodes, columns or positions, optional
        Checked against the graph; no baseline conditions on it.
    task : "auto", "regression" or "classification"
        ``"auto"`` does what the estimator does; without one it classifies where y holds text, categories, booleans or
        exactly two distinct values.
    estimator : scikit-learn regressor or classifier, optional
        In place of the network, for all but `Veitch`, whose penalty needs gradients. It gets encoded rows: numbers that
        span [0, 1], one indicator per level. A Pipeline gets the frame itself. Parameters of the network are then
        not used.
    learner : Learner, optional
        In place of the network with the parameters below, as in `CIPRegressor`.
    missing, module, hidden, epochs, batch_size, learning_rate, weight_decay, schedule, early_stopping, \
validation_fraction, patience, device, mixed_precision, verbose, random_state
        As in `CIPRegressor`.

    Attributes
    ----------
    model_ : CIPRegressor, CIPClassifier or TableEstimator
        The trained predictor, without roles of its own.
    task_ : str
    inputs_ : tuple of str
        The columns that `predict` needs.
    classes_ : array
        In classification.
    """

    task: str = "auto"
    estimator: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table X, a frame or an array of every observed column but the outcome, and y, the outcome.

        ``sample_weight``: of each row in the loss of the predictor.
        """
        table = read_table(self, X, reset=True)
        same_rows(table, y)
        check_flags(self, "early_stopping", "mixed_precision", "verbose")
        y = y if isinstance(y, pd.Series | pd.DataFrame) else np.asarray(y)
        roles = {name: getattr(self, name) for name in ("graph", "outcome", "protected", "context", "inputs")}
        columns = settle_columns(tuple(table.columns), **roles)
        self.task_ = self._settled_task(y)
        self.inputs_ = self._read_by_predict(columns)
        table, complete = without_missing(table, self._read_by_fit(columns), self.missing)
        if not complete.all():
            rows = np.flatnonzero(complete)
            y, sample_weight = take(y, rows), None if sample_weight is None else take(sample_weight, rows)
        self.encoding_ = TableEncoding.of(table, self.inputs_)
        self.model_ = self._learnt(table, y, sample_weight, columns)
        self.__dict__.pop("classes_", None)
        if self.task_ == CLASSIFICATION:
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict; only the columns in ``inputs_`` are needed."""
        check_is_fitted(self, "model_")
        if self.task_ == CLASSIFICATION:
            return self.classes_[self._mean_answer(X, self._probabilities).argmax(axis=1)]
        return self._mean_answer(X, self.model_.predict)

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (n, classes); only in classification, where the estimator has them."""
        check_is_fitted(self, "model_")
        return self._mean_answer(X, self._probabilities)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² in regression, accuracy in classification."""
        check_is_fitted(self, "model_")
        measure = accuracy_score if self.task_ == CLASSIFICATION else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    @abstractmethod
    def _read_by_predict(self, columns: NodeColumns) -> tuple[str, ...]:
        """Columns without which there is no prediction."""

    def _read_by_fit(self, columns: NodeColumns) -> tuple[str, ...]:
        """Columns without which there is no training; by default those of `predict`."""
        return self.inputs_

    def _learnt(self, table: pd.DataFrame, y: Any, weights: Any, columns: NodeColumns) -> Any:
        """Learn on training rows what the baseline needs, and return the trained predictor."""
        return self._trained(self._view(table), y, weights)

    def _view(self, table: pd.DataFrame) -> pd.DataFrame:
        """What the predictor is shown for these rows, by default all that it reads."""
        return table[list(self.inputs_)]

    def _views(self, table: pd.DataFrame) -> Iterable[pd.DataFrame]:
        """Several views of the same rows, where answers are averaged."""
        yield self._view(table)

    def _settled_task(self, y: Any) -> str:
        one_of(self.task, "task", TASKS)
        if self.estimator is not None:
            if self.module is not None or self.learner is not None:
                other = "module" if self.learner is None else "learner"
                raise InputError(f"Pass either a {other} or an estimator, got both; the estimator stands in its place.")
            task = task_of_estimator(self.estimator)
            if self.task not in ("auto", task):
                kind = type(self.estimator).__name__
                raise InputError(f"The task is {self.task}, but {kind} does {task}; change one of them.")
            return task
        if self.task != "auto":
            return self.task
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            return REGRESSION
        return task_of(y if isinstance(y, pd.Series) else pd.Series(np.asarray(y).ravel()))

    def _trained(self, table: pd.DataFrame, y: Any, weights: Any) -> Any:
        """The network, or the estimator in its place, trained on all columns of a table."""
        if self.estimator is not None:
            return TableEstimator.fitted(self.estimator, table, y, weights, seed=as_seed(self.random_state))
        return self._network().fit(table, y, weights)

    def _network(self, **more: Any) -> CIPEstimator:
        """The untrained network; without an independence among ``more`` it has no penalty."""
        shared = (*NETWORK_KEYWORDS, "missing", "module", "verbose", "random_state", "learner")
        kind = CIPClassifier if self.task_ == CLASSIFICATION else CIPRegressor
        return kind(**{name: getattr(self, name) for name in shared} | more)

    def _regression(self, inputs: Tensor, target: Tensor, *, is_category: bool, seed: int) -> NetworkRegression:
        """Regress one encoded column on others by a network, trained as the predictor is where that is one."""
        like = self._network(learner=self.learner if self.learner is not None and self.learner.is_network else None)
        return NetworkRegression.trained(like, inputs, target, is_category=is_category, seed=seed)

    def _has_probabilities(self) -> bool:
        predictor = getattr(self, "model_", CIPClassifier if self.estimator is None else self.estimator)
        return getattr(self, "task_", self.task) == CLASSIFICATION and hasattr(predictor, "predict_proba")

    def _probabilities(self, view: pd.DataFrame) -> np.ndarray:  # (n, classes)
        if hasattr(self.model_, "predict_proba"):
            return self.model_.predict_proba(view)
        return self.model_.predict(view)[:, None] == self.classes_

    def _mean_answer(self, X: Any, ask: Callable[[pd.DataFrame], np.ndarray]) -> np.ndarray:
        table = rows_to_predict(self, X, self.inputs_)
        if table.empty:
            raise InputError(f"X has no rows to predict, got shape {table.shape}; pass at least one row.")
        table = table[list(self.inputs_)]
        for name in self.inputs_:
            check_cells(table[name])
        warn_of_unseen(self.encoding_, table, stacklevel=4)
        with warnings.catch_warnings():
            # The network would count too few of rows that are asked once, and in blocks.
            warnings.simplefilter("ignore", UnseenLevelsWarning)
            warnings.simplefilter("ignore", FarOutsideWarning)
            return asked_once(table, self.inputs_, lambda rows: np.mean([ask(view) for view in self._views(rows)], 0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        task = getattr(self, "task_", None) if self.task == "auto" else self.task
        if task == CLASSIFICATION:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == REGRESSION:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags


def asked_once(
    table: pd.DataFrame, names: Sequence[str], ask: Callable[[pd.DataFrame], np.ndarray]
) -> np.ndarray:  # (n,) or (n, outputs)
    """Return answers about the named columns, asked in blocks of rows.

    Rows that agree in all of these columns are asked once, and get the same answer to the last bit.
    """
    first, group = alike([table[name] for name in names], len(table))
    different = table[list(names)].iloc[first].reset_index(drop=True)
    blocks = (different[start : start + _ROWS_AT_ONCE] for start in range(0, len(different), _ROWS_AT_ONCE))
    return np.concatenate([ask(block) for block in blocks])[group]


@dataclass(frozen=True)
class NodeColumns:
    """The nodes that a baseline reads, with the columns that hold them."""

    names: tuple[str, ...]  # columns of the table
    protected: tuple[str, ...]  # nodes; without a graph every column, or every vector of columns, is one
    inputs: tuple[str, ...]
    outcome: str | None = None
    graph: CausalGraph | None = None

    def of(self, nodes: Iterable[str], role: str = "inputs") -> tuple[str, ...]:
        """Return the columns of some nodes, or say which node has none."""
        return columns_of_nodes(nodes, self.names, role)

    def descendants(self) -> tuple[str, ...]:
        """Nodes that A changes, each after its causes; neither A itself nor the outcome, latent ones left out."""
        graph = self._known_graph()
        below = graph.descendants(self.protected) - set(self.protected) - {self.outcome} - graph.latent
        return tuple(node for node in graph.topological_order() if node in below)

    def unchanged(self) -> tuple[str, ...]:
        """Columns of the inputs that do not descend from A."""
        changed = {*self.protected, *self.descendants()}
        return self.of(node for node in self.inputs if node not in changed)

    def responding(self) -> tuple[str, ...]:
        """Descendants of A that are inputs or act on inputs, each after its causes."""
        acting = self._known_graph().ancestors(self.inputs)
        return tuple(node for node in self.descendants() if node in acting)

    def causes(self, node: str, *, with_outcome: bool = True) -> tuple[str, ...]:
        """Observed parents of a node, and A too where it acts on the node through a parent that is not observed.

        ``with_outcome=False`` counts the outcome, which is not known when a prediction is made, as not observed.
        """
        graph = self._known_graph()
        parents = graph.parents(node)
        hidden = set(graph.latent if with_outcome else {*graph.latent, self.outcome})
        through_hidden = hidden.intersection(parents) & graph.descendants(self.protected)
        observed = [parent for parent in parents if parent not in hidden]
        return tuple(dict.fromkeys([*observed, *(self.protected if through_hidden else ())]))

    def _known_graph(self) -> CausalGraph:
        if self.graph is None:
            why = "A causal graph is needed to tell what descends from the protected columns, got graph=None"
            raise InputError(f"{why}; pass for example graph=CausalGraph.from_edges('A -> L, L -> Y').")
        return self.graph


def settle_columns(
    names: Sequence[str], *, graph: Any, outcome: str | None, protected: Any, context: Any, inputs: Any
) -> NodeColumns:
    """Return the nodes that arguments name, as nodes or as columns or by position, checked against table and graph."""
    names = tuple(names)
    named = named_columns({"protected": protected, "context": context, "inputs": inputs}, names, outcome)
    if graph is None:
        if not named["protected"]:
            why = f"No protected column was named, got protected={protected!r}"
            raise InputError(f"{why}; name the columns to be invariant in.")
        protected_nodes = tuple(dict.fromkeys(named["protected"]))
        # A vector is a node where it is named so.
        vectors = [node for node in protected_nodes if node not in names]
        seen = named["inputs"] or tuple(node_of(name, vectors) for name in names)
        columns = NodeColumns(names, protected_nodes, tuple(dict.fromkeys(seen)), outcome)
    else:
        nodes = named_nodes(named, checked_graph(graph), names)
        roles = read_question(graph, outcome, nodes["protected"], nodes["context"], nodes["inputs"], None)
        refuse_outcome(roles.outcome, names)
        columns = NodeColumns(names, roles.protected, roles.inputs, roles.outcome, graph)
    columns.of(columns.protected, "protected")
    columns.of(columns.inputs, "inputs")
    return columns


def outcome_columns(y: Any, task: str) -> pd.DataFrame:
    """Return y under names that no input has, for what conditions on it; classes as text, which makes them labels."""
    values = np.asarray(y)
    if task == CLASSIFICATION:
        values = values.astype(str)
    outputs = values.reshape(len(values), -1)
    return pd.DataFrame(outputs, columns=[f"the outcome[{number}]" for number in range(outputs.shape[1])])
