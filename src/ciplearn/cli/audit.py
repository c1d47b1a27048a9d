"""``ciplearn audit`` and ``imagine``: what a model would have said, had the protected columns been different."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CLASSIFICATION, holds_numbers, text_as_numbers
from ciplearn._core.errors import InputError
from ciplearn._core.files import whole_file
from ciplearn._core.workers import give_back_what_is_freed
from ciplearn.causal import CausalGraph
from ciplearn.cli import options
from ciplearn.cli.audited import Audited, Effort
from ciplearn.cli.commands import Audit, Imagine, Subject
from ciplearn.cli.model_folder import GRAPH, OPTIONS, AnyTable, ModelFolder, lacks_its_model
from ciplearn.cli.options import join_names, split_names
from ciplearn.cli.output import keep_inputs, printable, say, say_command, say_json
from ciplearn.cli.predict import ANSWER, PROBABILITY, written_table
from ciplearn.evaluation.any_model import Foreign
from ciplearn.evaluation.conclusion import FAILS, PASSES, USELESS, Limits
from ciplearn.repairing import Repaired
from ciplearn.report import Report
from ciplearn.report.content import PROFILES
from ciplearn.report.sections import BiasAudit
from ciplearn.sources.table_file import TableFile

# Options that say where to read, where to write and what to show.
_NOT_REPEATED = ("model", "table", "out", "config", "help_all", "as_json", "preset")

# Options that a folder answers.
_ROLES = ("outcome", "protected", "context", "inputs", "adjustment", "categories", "task")

_SHOWN = 6  # rows that are shown where nobody has named some, and predictions cannot tell which are affected most
ID = "id"  # the column by which a row is known again when predictions come back
_MOST_ROWS = 5_000_000  # more rows than people want in a file
_DIGITS = 9  # digits by which a row is known again, on this machine or another


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

    def report(self, subject: Audited, **more: Any) -> Report:
        """Measure the model under the causal model that was named, or under an estimated one."""
        asked = self.asked
        return subject.report(self.effort, asked.seed, asked.scm, run_code=asked.run_code, **more)

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


def audit(asked: Audit) -> int:
    """Measure a model, write the page, and say what was found; 1 where the model does not pass."""
    report = audited(asked)
    if asked.as_json:
        rates = {"bias_audit": BiasAudit.of(report).to_dict()} if asked.profile == "bias-audit" else {}
        say_json({**report.to_dict(), **rates, "file": printable(asked.out)})
    else:
        say("\n".join(report.summary()))
        if command := report.next_steps.get(report.conclusion.state):
            say_command("Next:", [shlex.quote(word) for word in shlex.split(command)])
        say(f"Written: {printable(asked.out)}")
    return int(asked.gate and report.conclusion.state != PASSES)


def audited(asked: Audit) -> Report:
    """Measure a model, write the page, and return what stands on it."""
    one_of(asked.profile, "--profile", PROFILES)
    call = AuditCall.of(asked)
    individuals = call.individuals
    keep_inputs(asked.out, *call.files, asked.onnx, asked.predictions)
    with (
        call.opened() as source,
        # Opened first: a place that cannot be written to is found out before the work is done.
        whole_file(asked.out) as stream,
    ):
        told, most = asked.predictions is not None, asked.max_effect
        subject = call.subject(source, call.foreign())
        if most is not None and most > 1 and subject.task == CLASSIFICATION:
            raise InputError(f"--max-effect is of a probability here, and cannot be {most:g}; pass 0.05 for 5 points.")
        draft = call.report(subject, groups=split_names(asked.groups), limits=Limits(most, asked.max_vcf))
        steps = _next_steps(subject, call)
        remedy, steps = _remedy(subject, call, draft, steps) if call.effort.doubt else ("", steps)
        report = replace(
            draft,
            # The rows that are affected most are known only when all were asked about.
            individuals=call.fixed_individuals(subject) if told else individuals,
            settings=_settings(call, asked.out),
            next_steps=steps,
            remedy=remedy,
        )
        stream.write(report.to_html(asked.profile).encode())
    return report


def imagine(asked: Imagine) -> None:
    """Write the rows that an audit would ask a model about."""
    call = AuditCall.of(asked)
    individuals = call.individuals
    keep_inputs(asked.out, *call.files)
    noted = RowsNoted()
    with call.opened() as source, written_table(asked.out) as written:
        subject = call.subject(source, Foreign("The model", noted, inputs=call.inputs))
        draft = call.report(subject, compare=False)
        # Whatever the report asks about, so that nothing is missing when it is written.
        replace(draft, individuals=individuals or call.fixed_individuals(subject)).to_dict()
        rows = noted.rows()
        written.write(rows)
    if asked.as_json:
        say_json({"rows": len(rows), "columns": list(rows.columns), "file": printable(asked.out)})
        return
    say(f"Written: {printable(asked.out)}, {len(rows)} rows with {', '.join(rows.columns)}.")
    say(f"Next: predict them, keep {ID}, and pass the file to ciplearn audit --predictions with the same options.")


def _settings(call: AuditCall, out: Path) -> dict[str, dict[str, Any]]:
    """What repeats the audit, and the training before it, as option files; a flag that is off is none, zero is one."""
    folder, words = call.folder, [printable(Path(path.name)) for path in call.places]
    given = {
        name: printable(Path(value.name)) if isinstance(value, Path) else value
        for name, value in vars(call.asked).items()
        if name not in _NOT_REPEATED and value is not None and value is not False
    }
    effort = {name.removeprefix("n_"): value for name, value in vars(call.effort).items()}
    again = f"ciplearn audit {' '.join(words)} --config audit.yaml --out {printable(Path(out.name))}"
    if folder is None:
        return {again: given | effort}
    trained = f"ciplearn {_made_by(folder)} {folder.training['table']['name']} --config fit.json --out {words[0]}"
    return {trained: folder.training["settings"], again: given | effort}


def _made_by(folder: ModelFolder) -> str:
    """The command that has written a folder: a model from elsewhere was repaired."""
    return "repair" if {"predictor", "onnx"} & set(folder.training["settings"]) else "fit"


def _model_named(folder: ModelFolder) -> str:
    """A folder as commands name it, with the model that it does not hold."""
    name = shlex.quote(printable(Path(folder.path.name)))
    if not lacks_its_model(folder.path):
        return name
    return f"{name} --predictor {shlex.quote(folder.training['settings']['predictor'])}"


def _roles_named(subject: Audited) -> str:
    outcome, protected = subject.verdict.outcome, join_names(subject.verdict.protected)
    return f"--outcome {shlex.quote(outcome)} --protected {shlex.quote(protected)}"


def _next_steps(subject: Audited, asked: AuditCall) -> dict[str, str]:
    """What to type next, by the conclusion."""
    table, folder = shlex.quote(printable(Path(asked.table.name))), asked.folder
    if folder is None or not subject.is_ours:
        graph = shlex.quote(asked.asked.graph or ("GRAPH" if folder is None else f"{folder.path.name}/{GRAPH}"))
        fit = f"ciplearn fit {table} --graph {graph} {_roles_named(subject)} --out model"
        return {"passes": f"ciplearn check {graph} --data {table}", "fails": fit, "useless": fit}
    name, training = printable(Path(folder.path.name)), folder.training
    made_by, options = f"ciplearn {_made_by(folder)}", f"--config {shlex.quote(f'{name}/{OPTIONS}')}"
    again = f"{made_by} {table} {options}"
    tolerance, gamma = training["tolerance"], training["gamma"]
    stricter = "--strict" if gamma is None else f"--gamma {10 * gamma or 1:g}"
    if tolerance is not None:
        stricter = f"--tolerance {2 * tolerance or 0.1:g}"
    return {
        # Rows that train, too, are what tells: two causal models of them disagree.
        "cannot be told": f"{made_by} MORE_ROWS.csv {options} --out again",
        "passes": f"ciplearn predict {_model_named(folder)} {table} --out predictions.csv",
        "fails": f"{again} {stricter} --out stricter",
        "useless": f"{again} --context {shlex.quote(join_names(subject.verdict.protected))} --out smaller-context",
    }


def _remedy(subject: Audited, asked: AuditCall, report: Report, steps: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What was tried where a model of ours fails, itself repaired further, and what to type next."""
    further = subject.stricter(report.audit, asked.asked.seed) if report.conclusion.state == FAILS else None
    if further is None or asked.folder is None:
        return "", steps
    strength, end = further[0], further[1].conclusion.state
    if end != PASSES:
        how = {FAILS: "still fails", USELESS: "is useless"}.get(end, "cannot be told from these rows to pass")
        del steps[FAILS]
        advice = "Ask for a larger limit, let it read other columns, or collect more rows."
        return f"Nothing useful passes: repaired in full, this model {how}. {advice}", steps
    name, table = printable(Path(asked.folder.path.name)), shlex.quote(printable(Path(asked.table.name)))
    graph, roles = shlex.quote(f"{name}/{GRAPH}"), _roles_named(subject)
    steps[FAILS] = f"ciplearn fit {table} --graph {graph} {roles} --strict --out stricter"
    if isinstance(asked.folder.model, Repaired):
        limits = (("max-effect", report.audit.limits.max_effect), ("max-vcf", report.audit.limits.max_vcf))
        typed = "".join(f" --{limit} {value}" for limit, value in limits if value is not None)
        steps[FAILS] = f"ciplearn audit {_model_named(asked.folder)} {table} --strength {strength:g}{typed}"
    how = "in full" if math.isinf(strength) else f"at strength {strength:g}"
    return f"Repaired {how}, this model passes on the same rows.", steps


class RowsNoted:
    """Stands in for a model: notes which rows it is asked about, and answers with numbers that mean nothing."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._tables: list[pd.DataFrame] = []

    def __call__(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        """Answer by what a row is, so that different rows have different answers."""
        if ID in frame.columns:
            raise InputError(f"A column is named {ID!r}, as the file names its rows; rename it in table and graph.")
        codes = _codes(frame)
        fresh = frame.assign(**{ID: [f"{code:016x}" for code in codes]}).drop_duplicates(ID)
        fresh = fresh[~fresh[ID].isin(self._known)]
        self._known.update(fresh[ID])
        if len(self._known) > _MOST_ROWS:
            raise InputError(f"The audit asks about over {_MOST_ROWS} rows; pass fewer --points or --interventions.")
        self._tables.append(fresh[[ID, *frame.columns]])
        return 0.05 + 0.9 * codes / 2.0**64

    def rows(self) -> pd.DataFrame:
        """Return them, each once."""
        return pd.concat(self._tables, ignore_index=True)


def from_predictions(path: Path, inputs: Sequence[str] | None) -> Foreign:
    """Read what a model has said about rows, to be looked up by what is in a row."""
    with TableFile(path).opened(labels=[ID]) as opened:
        probabilities = [name for name in opened.names if name.startswith(PROBABILITY) and name.endswith("]")]
        wanted = probabilities or [ANSWER]
        absent = [name for name in (ID, *wanted) if name not in opened.names]
        if absent:
            raise InputError(
                f"{path} lacks the column {absent[0]!r}; it needs {ID} as ciplearn imagine has written it, and "
                f"{ANSWER} or {PROBABILITY}LABEL]."
            )
        table = opened.read([ID, *wanted])
    columns = {}
    for name in wanted:
        column = text_as_numbers(table[name])
        if column is None or column.isna().any():
            words = [repr(cell) for cell in table[name] if text_as_numbers(pd.Series([cell])) is None]
            raise InputError(
                f"Column {name!r} of {path} holds {(words or ['an empty cell'])[0]}; every row needs a number."
            )
        columns[name] = column.to_numpy()
    answers = pd.DataFrame(columns, index=table[ID].astype(str))
    answers = answers[~answers.reset_index().duplicated().to_numpy()]
    if answers.index.has_duplicates:
        twice = answers.index[answers.index.duplicated()][0]
        raise InputError(f"{path} has several predictions for the row {twice}; keep one.")
    classes = [name[len(PROBABILITY) : -1] for name in probabilities] or None

    def ask(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        rows = answers.reindex([f"{code:016x}" for code in _codes(frame)])
        missing = int(rows.isna().any(axis=1).sum())
        if missing:
            raise InputError(
                f"{path} lacks {missing} of {len(frame)} rows that are asked about; pass the options that ciplearn "
                "imagine was called with, or imagine the rows anew."
            )
        return rows.to_numpy()

    return Foreign(str(path), ask, classes, None if inputs is None else tuple(inputs))


def _codes(frame: pd.DataFrame) -> np.ndarray[Any, Any]:  # (n,)
    """A number per row by which it is known: the hash of its cells in the order of their names."""
    cells = {}
    for name in sorted(frame.columns):
        column = frame[name]
        if holds_numbers(column):
            values = column.to_numpy(dtype=np.float64)
            size = np.where(values == 0, 1.0, np.abs(values))
            scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(size)))
            # Adding zero makes one of the two zeros.
            cells[name] = pd.Series(np.round(values * scale) / scale + 0.0)
        else:
            cells[name] = pd.Series(column.astype(str).to_numpy(dtype=object))
    return pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy()
