"""What each command takes, as it is typed; its docstring is the help. How to train is read off what was typed.

This module loads fast, so that ``--help`` does: what does the work is imported when it is asked for.
"""

# ruff: noqa: RUF009 - what is called makes a field

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ciplearn._core.arguments import one_of
from ciplearn._core.errors import InputError
from ciplearn.cli import options
from ciplearn.cli.options import (
    GRAPH_HELP,
    NEEDED,
    PRESETS,
    argument,
    effort,
    goal,
    hidden,
    named_goal,
    of_panel,
    role,
    run,
    share,
)
from ciplearn.cli.output import note

AUTO, REPAIR, INDEPENDENCE = "auto", "repair", "independence"
_TOLERANCE = "10%"  # what may be lost where nothing was said: a tenth of what an unconstrained predictor explains

# Goals, and what a typed one replaces of a file: only repair keeps to the first ones.
_GOALS, _HOW = ("max_effect", "vcf", "strict", "tolerance", "gamma"), ("route", "penalty", "refit", "measure")
_REPLACED = dict.fromkeys(_GOALS[:3], _GOALS + _HOW) | {"tolerance": _GOALS, "gamma": (*_GOALS, "route")}

_choice = of_panel("Route, penalty and gamma", hidden=True)
_network = of_panel("Network", hidden=True)


@dataclass(frozen=True)
class Plan(options.GoalOptions):
    """What is asked of a predictor, and how it is trained; `settled` brings both together."""

    tolerance: str | None = goal(
        "The paper's way to ask: vary as little as possible, and lose at most this share of what a predictor without a "
        "penalty explains: 10%.",
        "SHARE",
        hidden=True,
    )
    learner: str = goal("network, boosted or linear. Default: the best.", "NAME", default=AUTO, show_default=False)
    route: str = _choice(
        "repair changes a model as little as possible, in seconds; independence, counterfactual, line or left-out (the "
        "protected columns are not looked at) trains along that route, within the tolerance. auto is repair, or all "
        "trained routes with --tolerance. With --gamma or --penalty: independence.",
        "ROUTE",
        default=AUTO,
    )
    gamma: float | None = _choice("Weight of the penalty.", "NUMBER", min=0, max=1e9)
    measure: str | None = _choice(
        "What the tolerance is about: loss (squared error or log loss, the default), score (R² or accuracy), auc or "
        "balanced_accuracy.",
        "NAME",
    )
    penalty: str | None = _choice(
        "residual-hscic, hscic, hscic-paper, circe, hsic or mmd. Default: residual-hscic, or hsic where nothing is "
        "conditioned on.",
        "NAME",
    )
    compare: bool = _choice("With --gamma, also train without a penalty, to show what it costs.", default=True)
    refit: bool = _choice(
        "Train once more on the rows that judged, too, instead of keeping the model.", None, "--refit", default=False
    )
    on_violation: str = _choice(
        "raise or warn, where the graph does not certify the statement.", "WORD", default="raise"
    )
    preset: str = _network("quick, standard or thorough: epochs and gammas to try.", "NAME", default="standard")
    epochs: int | None = _network("Instead of the preset's.", "NUMBER", min=1)
    batch_size: int = _network("Rows of a step.", "NUMBER", default=256, min=2)
    learning_rate: float = _network("Of Adam.", "NUMBER", default=3e-3, min=0)
    hidden: str = _network("Widths of the hidden layers.", "NUMBERS", default="64,64")
    device: str = _network("auto, cpu or cuda.", "NAME", default="auto")

    def settled(self) -> Plan:
        """Return the plan with the route that its options mean together; refuse options that contradict each other."""
        gamma, tolerance, route = self.gamma, self.tolerance, self.route
        if tolerance is not None and share("--tolerance", tolerance) > 1:
            note(f"A tolerance of {tolerance} allows to lose more than all that is explained; a tenth of it is 10%.")
        if self.vcf is not None:
            share("--vcf", self.vcf, 1)
        if gamma is not None and tolerance is not None:
            raise InputError(f"Both --gamma {gamma:g} and --tolerance {tolerance} were given; pass one of them.")
        one_of(self.preset, "--preset", PRESETS)
        # What is registered is loaded where it is asked for.
        if route != AUTO:
            from ciplearn.routes import ROUTES

            one_of(route, "--route", (AUTO, *ROUTES))
        if self.learner != AUTO:
            from ciplearn.learners import LEARNERS

            one_of(self.learner, "--learner", (AUTO, *LEARNERS))
        if gamma is not None or self.penalty is not None or self.refit:
            if route not in (AUTO, INDEPENDENCE):
                raise InputError(f"--gamma, --penalty and --refit are for the independence route, got --route {route}.")
            route = INDEPENDENCE
        if self._named and route not in (AUTO, REPAIR):
            raise InputError(f"--{self._named} is met by repair, got --route {route}; leave one of them out.")
        return replace(self, route=route, measure=self.measure or "loss")

    def streamed(self) -> Plan:
        """Return the plan for a table beyond memory, which is trained with a penalty, batch by batch."""
        asked = "route repair" if self.route == REPAIR else self._named
        if asked:
            raise InputError(f"--{asked} needs a table in memory, got a stream; pass --tolerance, or fewer rows.")
        return replace(self, tolerance=_TOLERANCE) if self.by_goal else self

    @property
    def _named(self) -> str:
        """The goal that only repair meets, as an option is called."""
        goals = {"max_effect": self.max_effect, "vcf": self.vcf, "strict": self.strict, "tolerance": self.tolerance}
        return named_goal(**goals).replace("tolerance", "")

    @property
    def by_goal(self) -> bool:
        """Whether candidates are compared for a goal, instead of within a tolerance or at a gamma."""
        return self.route in (AUTO, REPAIR) and self.tolerance is None

    @property
    def allowed(self) -> float | None:
        """What a search may lose; None where gamma is fixed, or another goal is set."""
        if self.gamma is not None or self.by_goal:
            return None
        return share("--tolerance", self.tolerance or _TOLERANCE)

    @property
    def trials(self) -> int:
        """The largest number of gammas to try."""
        return PRESETS[self.preset].gammas

    def network(self, n_rows: int) -> Mapping[str, Any]:
        """Return the settings of a network for so many training rows."""
        return {
            "epochs": self.epochs or epochs_of(self.preset, n_rows, self.batch_size),
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "hidden": self.widths,
            "device": self.device,
            "early_stopping": True,
        }

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers."""
        try:
            widths = tuple(int(width) for width in self.hidden.split(",") if width.strip())
        except ValueError:
            widths = (0,)
        if any(width < 1 for width in widths):
            raise InputError(f"--hidden must be whole numbers above zero, got {self.hidden!r}; pass for example 64,64.")
        return widths


def epochs_of(preset: str, rows: int, batch_size: int) -> int:
    """Return the epochs of a preset for so many rows."""
    effort = PRESETS[preset]
    return max(effort.epochs, math.ceil(effort.steps / math.ceil(rows / batch_size)))


def prefer_typed_goal(context: Any) -> None:
    """Let a goal that was typed replace that of ``--config``, and how the other one was to be reached."""
    source = {name: getattr(context.get_parameter_source(name), "name", "") for name in context.params}
    defaults = {each.name: each.default for each in context.command.params}
    for typed in (name for name in _GOALS if source.get(name) == "COMMANDLINE"):
        context.params |= {name: defaults[name] for name in _REPLACED[typed] if source.get(name) == "DEFAULT_MAP"}


@dataclass(frozen=True)
class Demo(options.JsonOption):
    """Predict the income of a bank's applicants so that sex has no influence, and audit that, in half a minute.

    For example:
      ciplearn demo --out demo-output
    """

    out: Path = role(
        "Where to write the table, the graph, the model, its report and a picture.",
        "FOLDER",
        default=Path("ciplearn-demo"),
    )


@dataclass(frozen=True)
class Bench(options.JsonOption):
    """Measure what a penalty costs: ratios of times taken in turns, in one run, on one thread.

    For example:
      ciplearn bench --large
    """

    large: bool = role("Add the preparation on a million rows, about a minute.", None, "--large", default=False)


@dataclass(frozen=True)
class Check(options.RunOptions, options.ReadingOptions, options.RoleOptions, options.SeedOption):
    """Say which independence makes a predictor counterfactually invariant, or why none is certified.

    NAMES are separated by commas. With --data the roles may be left out. Exit code: 0 it holds and no data refute the
    graph, 1 it does not or they do, 2 a mistake in the call.

    For example:
      ciplearn check 'sex -> job -> pay, sex -> pay' --outcome pay --protected sex
      ciplearn check 'sex, age | job | pay' --data people.csv
    """

    graph: str = argument(GRAPH_HELP, "GRAPH", NEEDED)
    data: Path | None = role("Test the graph's independencies on this table, too.", "TABLE")
    tests: int = role("So many of them at most.", "NUMBER", default=200, min=1)
    svg: Path | None = role("Write a picture of the graph, with what the table contradicts in red.", "FILE")


@dataclass(frozen=True)
class Fit(
    options.RunOptions,
    options.TrainingEngineOptions,
    options.ReadingOptions,
    Plan,
    options.TaskOptions,
    options.TableToModel,
):
    """Find the most accurate predictor that would have said the same had the protected columns been different.

    By default it meets the limits of ciplearn audit. NAMES are separated by commas.

    For example:
      ciplearn fit t.csv --graph g.txt --outcome pay --protected sex --out model
      ciplearn fit --config model/fit.json --vcf 5% --out stricter
    """

    holdout: float = of_panel("Run", hidden=True)(
        "Share of the rows kept from training, for the audit.", "SHARE", default=0.2, min=0, max=0.9
    )
    missing: str = of_panel("Run", hidden=True)(
        "Rows with missing values: drop, impute or error.", "WORD", default="drop"
    )
    dry_run: bool = run("Say what was understood and stop.", None, "--dry-run", default=False)


@dataclass(frozen=True)
class Repair(
    options.RunOptions,
    options.ReadingOptions,
    options.GoalOptions,
    options.ModelOptions,
    options.TaskOptions,
    options.TableToModel,
):
    """Change a model as little as possible, so that it says the same had the protected columns been different.

    The model is asked and never trained. An ONNX file is kept in the folder; a model of a Python module is named again
    with --predictor wherever the folder is used.

    For example:
      ciplearn repair people.csv --predictor trees:mine --config r.yaml --out new
    """

    report: Path | None = role("Also write a page, before and after.", "FILE")


@dataclass(frozen=True)
class Predict(options.RunOptions, options.EngineOptions, options.ReadingOptions, options.StrengthOption):
    """Predict row by row, in the order of the file, in constant memory.

    A row that misses an input gets an empty prediction, unless the model was trained with --missing impute. Classifiers
    add one column per class with its probability.

    For example:
      ciplearn predict model new.csv --out predictions.csv --id person
      ciplearn predict model new.csv | head
    """

    model: Path = argument("A folder that ciplearn fit has written.", "MODEL_DIR", NEEDED)
    table: Path = argument("CSV, TSV or Parquet: a file, a folder, a pattern, or -.", "TABLE", NEEDED)
    out: Path | None = role("A .csv, .tsv or .parquet file, also .csv.gz. Default: CSV to standard output.", "FILE")
    identity: str | None = role("A column to copy beside the predictions.", "NAME", "--id")
    predictor: str | None = role("The model that was repaired, where the folder does not hold it.", "MODULE:NAME")
    chunk_rows: int = role("Rows held in memory at a time.", "NUMBER", default=50_000, min=1)


@dataclass(frozen=True)
class Subject(options.RunOptions, options.ReadingOptions, options.TaskOptions, options.SeedOption):
    """What ``audit`` and ``imagine`` share: the model or its roles, the table, how much to compute."""

    model: Path | None = argument("A folder of ciplearn fit; left out where roles are named.", "[MODEL_DIR]")
    table: Path | None = argument("A CSV, TSV or Parquet file, or - for standard input.", "TABLE")
    graph: str | None = role("A file, or the graph itself. Default: that of MODEL_DIR.", "GRAPH")
    scm: Path | None = hidden(
        "A causal model that you know: formulas in YAML, TOML or JSON, or Python with --run-code. Default: one is "
        "estimated from the graph and the table.",
        "FILE",
    )
    run_code: bool = hidden("Run the Python file of --scm.", None, "--run-code", default=False)
    individuals: str | None = hidden(
        "Numbers of rows to show, counted from 0. Default: those affected most.", "NUMBERS"
    )
    preset: str = run("quick, standard or thorough.", "NAME", default="standard")
    points: int | None = effort("Rows whose counterfactuals are imagined.", "NUMBER", min=2)
    interventions: int | None = effort("Values of the protected columns per row.", "NUMBER", min=2)
    draws: int | None = effort("Draws of what a row leaves open.", "NUMBER", min=1)
    scm_rows: int | None = effort("Rows the causal model is estimated from.", "NUMBER", min=20)


@dataclass(frozen=True)
class Audit(options.EffectOption, options.StrengthOption, options.ModelOptions, Subject):
    """Measure a model and write a page about it: does it pass, effects, groups, cost, doubts, individuals, reasons.

    Rows that trained are known again and left out. With MODEL_DIR, any other model is audited beside that one.

    For example:
      ciplearn audit model people.csv --out report.html
      ciplearn audit people.csv --predictor trees:mine --config roles.yaml
    """

    predictions: Path | None = role("Predictions for the rows that ciplearn imagine has written.", "FILE")
    positive: str | None = hidden(
        "Which of two labels is the positive decision. Default: the second in order.", "LABEL"
    )
    out: Path = role("The page to write.", "FILE", default=Path("report.html"))
    groups: str | None = hidden("Columns to show scores by. Default: the protected ones.", "NAMES")
    max_vcf: float | None = hidden("The most that VCF may be, up to the end of its interval.", "NUMBER", min=0)
    gate: bool = run("Exit with code 1 where the model does not pass.", default=True, show_default=False)
    profile: str = role(
        "decision, bias-audit (rates by group) or model-card.", "NAME", default="decision", show_default=False
    )
    doubt: int | None = effort(
        "How wrong may graph and causal model be? So many other graphs, 0 for none. Default: 20, 0 with --preset "
        "quick, 200 with thorough.",
        "NUMBER",
        min=0,
    )


@dataclass(frozen=True)
class Imagine(Subject):
    """Write the rows that an audit would ask a model about: as they are, and had the protected columns been different.

    Let any model predict them, keep the column id beside its predictions, and pass these to ciplearn audit
    --predictions with the same options. A number is predicted in a column prediction, which for two labels is the
    probability of the positive one; or one column probability[LABEL] per label.

    For example:
      ciplearn imagine people.csv --config roles.yaml --out worlds.csv
      ciplearn audit people.csv --config roles.yaml --predictions said.csv
    """

    out: Path = role("The file of rows to write: .csv, .tsv or .parquet.", "FILE", default=NEEDED)


@dataclass(frozen=True)
class Workbench(options.JsonOption):
    """Draw a causal graph, see the verdict, train and walk along the frontier, in the browser.

    For example:
      ciplearn workbench people.csv --graph graph.txt
    """

    table: Path | None = argument("A CSV, TSV or Parquet file.", "[TABLE]")
    graph: str | None = role(GRAPH_HELP, "GRAPH")
    model: Path | None = role("A model folder of ciplearn fit, to look at.", "FOLDER")
    demo: bool = role("Start with the demo's graph and table.", None, "--demo", default=False)
    folder: Path | None = role(
        "Where drawing, tables and runs are kept. By default the same files find their work again.", "FOLDER"
    )
    port: int = role("0 takes the last one, or a free one.", "NUMBER", default=0, min=0, max=65535)
    host: str = role(
        "The address to listen on; any but 127.0.0.1 opens the page to others.", "ADDRESS", default="127.0.0.1"
    )
    browser: bool = role("Open the browser.", default=True)
    largest_table: int = role("Megabytes of an unpacked table from the page.", "NUMBER", default=100, min=1)


# Name on the command line, also that of the function which does the work -> what it takes, and the module of that one.
COMMANDS: dict[str, tuple[type, str]] = {
    "demo": (Demo, "demo"),
    "check": (Check, "check"),
    "fit": (Fit, "fit"),
    "repair": (Repair, "fit"),
    "predict": (Predict, "predict"),
    "audit": (Audit, "audit"),
    "imagine": (Imagine, "audit"),
    "bench": (Bench, "demo"),
    "workbench": (Workbench, "workbench"),
}
