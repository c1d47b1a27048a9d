"""What is audited: the call read, the model of a folder or any other, its graph and roles, the rows that judge it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.errors import InputError
from ciplearn._core.workers import OneProcess, give_back_what_is_freed
from ciplearn.causal import CausalGraph, Verdict
from ciplearn.cli import options
from ciplearn.cli.commands import Audit, Subject
from ciplearn.cli.imagined import from_predictions
from ciplearn.cli.model_folder import AnyTable, ModelFolder, columns_of, gaps_of, lacks_its_model, require_rows
from ciplearn.cli.options import Effort, split_names
from ciplearn.cli.training import sampled_table
from ciplearn.cli.training_table import FitRequest, TrainingTable
from ciplearn.evaluation.any_model import Foreign, Numbers, Probabilities
from ciplearn.sources import TableFiles

# Options that a folder answers.
_ROLES = ("outcome", "protected", "context", "inputs", "adjustment", "categories", "task")

_SHOWN = 6  # rows that are shown where nobody has named some, and predictions cannot tell which are affected most


@dataclass(frozen=True, eq=False)
class AuditCall:
    """What was typed, read: the table, the folder if there is one, and another graph than its own."""

    asked: Subject
    table: Path
    folder: ModelFolder | None
    graph: CausalGraph | None
    effort: Effort

    @classmethod
    def of(cls, asked: Subject) -> AuditCall:
        """Read the folder and the graph, and refuse options that contradict each other."""
        more: dict[str, Any] = {}
        if isinstance(asked, Audit):
            # Predictions that were written down cannot be asked about rows of other graphs.
            more["doubt"] = asked.doubt if asked.predictions is None else 0
        points = {"n_points": asked.points, "n_interventions": asked.interventions, "n_draws": asked.draws}
        effort = Effort.of(asked.preset, **points, scm_rows=asked.scm_rows, **more)
        places = [Path(each) for each in (asked.model, asked.table) if each is not None]
        named = [name for name in ("predictor", "onnx", "predictions") if getattr(asked, name, None) is not None]
        if len(named) > 1:
            raise InputError(f"Both {' and '.join(f'--{name}' for name in named)} were given; audit one at a time.")
        graph = None if asked.graph is None else options.read_graph(asked.graph)
        if not places or (len(places) == 1 and (graph is None or (not named and isinstance(asked, Audit)))):
            raise InputError(
                f"An audit needs MODEL_DIR and TABLE, got {' '.join(map(str, places)) or 'none'}; without MODEL_DIR "
                "pass --graph, the roles, and one of --predictor, --onnx and --predictions."
            )
        folder = None
        if len(places) == 2:
            repaired = None
            if isinstance(asked, Audit) and asked.predictor is not None and lacks_its_model(places[0]):
                # A repaired model whose own is not in the folder is audited with the one that is named.
                repaired, asked = asked.foreign(None, ()), replace(asked, predictor=None)
            folder = ModelFolder.read(places[0], foreign=repaired)
            strength = getattr(asked, "strength", None)
            folder = folder if strength is None else folder.at(strength)
            typed = [role for role in _ROLES if getattr(asked, role) is not None and (role != "inputs" or not named)]
            if typed:
                raise InputError(f"{places[0]} has its roles already, got --{typed[0]} too; leave one of them out.")
        return cls(asked, places[-1], folder, graph, effort)

    @contextmanager
    def opened(self) -> Iterator[AnyTable]:
        """Yield the table as it is described, or as training has read it."""
        with self.asked.source(self.table).kept_from_pipe() as kept:
            yield kept if self.folder is None else self.folder.as_in_training(kept)

    def foreign(self) -> Foreign | None:
        """Return the model that was named, or what it has said."""
        if not isinstance(self.asked, Audit):
            return None
        if self.asked.predictions is not None:
            return from_predictions(Path(self.asked.predictions), self.inputs)
        return self.asked.foreign(self.inputs, self.known_columns)

    def subject(self, source: AnyTable, foreign: Foreign | None) -> Audited:
        """Bring together the model, its roles and the rows that judge it."""
        give_back_what_is_freed()
        positive = getattr(self.asked, "positive", None)
        if self.folder is not None:
            return Audited.of_folder(self.folder, source, self.graph, foreign, positive)
        if self.graph is None or foreign is None:
            raise InputError("Without MODEL_DIR an audit needs --graph and a model; pass both.")
        return Audited.of_table(source, self.asked.request(self.graph, seed=self.asked.seed), foreign, positive)

    @property
    def places(self) -> list[Path]:
        """The folder, if any, and the table."""
        return [self.table] if self.folder is None else [self.folder.path, self.table]

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        graph = None if self.asked.graph is None else options.graph_file(self.asked.graph)
        return [*self.places, graph, self.asked.scm, self.asked.config]

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns that were named as inputs, in their order."""
        return split_names(self.asked.inputs, self.known_columns)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns that a model may read."""
        if self.graph is not None:
            return self.graph.observed
        return () if self.folder is None else tuple(self.folder.kinds)

    @property
    def individuals(self) -> list[int] | None:
        """The rows to show, where some were named."""
        text = self.asked.individuals
        try:
            return None if text is None else [int(part) for part in text.split(",") if part.strip()]
        except ValueError as error:
            raise InputError(f"--individuals must be numbers of rows, got {text!r}; pass for example 12,40.") from error

    def fixed_individuals(self, subject: Audited) -> list[Any]:
        """The rows to show where they cannot depend on predictions: those asked for, or the first."""
        return self.individuals or subject.rows.index[:_SHOWN].tolist()


@dataclass(frozen=True, eq=False)
class Audited:
    """A model and what it is judged by."""

    model: Any  # with ``predict_proba`` and ``classes_``, or with ``predict``
    folder: ModelFolder | None  # where the model comes from, or what it is compared with
    verdict: Verdict  # on the graph, with the roles
    task: str
    rows: pd.DataFrame  # complete rows that judge
    every: pd.DataFrame  # all complete rows
    about: str  # which rows these are
    unknown: dict[str, int]  # how many rows that would judge have no value in a column, so that they are left out
    positive: str | None = None  # the label that counts as the positive decision

    @classmethod
    def of_folder(
        cls,
        folder: ModelFolder,
        source: AnyTable,
        graph: CausalGraph | None = None,
        foreign: Foreign | None = None,
        positive: str | None = None,
    ) -> Audited:
        """Take roles and rows from a folder, on its graph or on another, and its model or another."""
        verdict = folder.verdict
        if verdict is None:
            raise InputError(f"{folder.path} was trained without a graph; fit it with one to audit it here.")
        drawn = verdict.graph if graph is None else graph
        if graph is not None or (foreign is not None and foreign.inputs is not None):
            verdict = _judged_anew(verdict, drawn, foreign)
        more = [node for node in drawn.observed if node not in folder.kinds]
        rows, every, about, unknown = folder.rows(source, more)
        task = folder.training["task"]
        rows, every = (_labelled(table, verdict, task) for table in (rows, every))
        subject = cls(None, folder, verdict, task, rows, every, about, unknown, positive)
        return replace(subject, model=subject.reordered(folder.model) if foreign is None else subject.asked(foreign))

    @classmethod
    def of_table(cls, source: AnyTable, request: FitRequest, foreign: Foreign, positive: str | None) -> Audited:
        """Take roles from a request, all complete rows of a table, and a model from elsewhere."""
        _check_known(foreign, request.graph)
        inputs = request.inputs if foreign.inputs is None else foreign.inputs
        wanted = replace(request, inputs=inputs, missing="impute", holdout=0.0)
        if isinstance(source, TableFiles):
            understood = sampled_table(source, wanted, OneProcess())
        else:
            understood = TrainingTable.read(source, wanted)
        table, verdict, task = understood.table, understood.verdict, understood.task
        every = _labelled(table.dropna(), verdict, task)
        require_rows(len(every), source)
        some = understood.n_rows > len(table)
        drawn = f"{len(every)} of {understood.n_rows}, drawn at random," if some else f"All {len(every)}"
        about = f"{drawn} complete rows of {source.path.name}; only you know if the model was trained on some."
        subject = cls(None, None, verdict, task, every, every, about, gaps_of(table), positive)
        return replace(subject, model=subject.asked(foreign))

    @property
    def is_ours(self) -> bool:
        """Whether the model is that of the folder."""
        return not isinstance(self.model, Numbers | Probabilities) or self.model.is_ours

    @property
    def inputs(self) -> list[str]:
        """The columns that are shown to the model, and to those of the folder beside it."""
        ours = () if self.folder is None else self.folder.shown
        return list(dict.fromkeys([*self.verdict.inputs, *ours]))

    def asked(self, foreign: Foreign) -> Any:
        """Return a model from elsewhere as the audit asks it."""
        if self.task == CLASSIFICATION:
            return Probabilities(foreign, sorted(set(self.every[self.verdict.outcome])), self.positive)
        if self.positive is not None:
            raise InputError(f"--positive names {self.positive!r}, and the outcome holds numbers; leave it out.")
        return Numbers(foreign)

    def reordered(self, model: Any) -> Any:
        """Return a model of ours with the positive label last."""
        if self.positive is None or model is None:
            return model
        ask = getattr(model, "predict_proba", model.predict)
        classes = getattr(model, "classes_", None)
        return self.asked(Foreign(type(model).__name__, ask, classes, columns_of(model), is_ours=True))


def _judged_anew(verdict: Verdict, graph: CausalGraph, foreign: Foreign | None) -> Verdict:
    """Ask the criterion on another graph, or about other inputs, with the roles of a training."""
    absent = [node for node in (verdict.outcome, *verdict.protected, *verdict.inputs) if node not in graph.observed]
    if absent:
        raise InputError(
            f"The model was trained with {absent[0]!r}, which --graph does not have among its observed nodes; add it."
        )
    inputs: Sequence[str] = verdict.inputs
    if foreign is not None and foreign.inputs is not None:
        _check_known(foreign, graph)
        inputs = foreign.inputs
    everything = set(verdict.graph.observed) - {verdict.outcome} <= set(verdict.context)
    context = None if everything else [node for node in verdict.context if node in graph.observed]
    return graph.criterion(verdict.outcome, verdict.protected, context, inputs)


def _check_known(foreign: Foreign, graph: CausalGraph) -> None:
    strangers = [name for name in foreign.inputs or () if name not in graph.observed]
    if strangers:
        raise InputError(
            f"{foreign.name} reads {strangers[0]!r}, which is no observed node of the graph; add it to the graph, so "
            "that its counterfactual values are known."
        )


def _labelled(rows: pd.DataFrame, verdict: Verdict, task: str) -> pd.DataFrame:
    """Make labels of the outcome a category, whatever they look like: a causal model needs to know."""
    if task != CLASSIFICATION:
        return rows
    return rows.assign(**{verdict.outcome: rows[verdict.outcome].astype("category")})
