"""``ciplearn audit`` and ``imagine``: what a model would have said, had the protected columns been different.

Reads from top to bottom: the call, the report and what stands in it, what would pass, what to type next.
"""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from ciplearn import evaluation
from ciplearn._core.arguments import one_of
from ciplearn._core.columns import CLASSIFICATION
from ciplearn._core.errors import CiplearnError, InputError, OddRowsWarning
from ciplearn._core.files import whole_file
from ciplearn._core.rows import as_generator
from ciplearn.cli.audited import AuditCall, Audited
from ciplearn.cli.commands import Audit, Imagine
from ciplearn.cli.imagined import ID, RowsNoted
from ciplearn.cli.model_folder import GRAPH, OPTIONS, ModelFolder, lacks_its_model
from ciplearn.cli.options import Effort, join_names, split_names
from ciplearn.cli.output import keep_inputs, note, printable, progress, say, say_command, say_json
from ciplearn.cli.predict import written_table
from ciplearn.doubt import how_wrong
from ciplearn.estimators.base import is_unconstrained
from ciplearn.estimators.tables import OddRows
from ciplearn.evaluation.any_model import Foreign
from ciplearn.evaluation.conclusion import FAILS, PASSES, USELESS, Limits, too_few_rows
from ciplearn.evaluation.counterfactual_rows import sample_with_every_label
from ciplearn.evaluation.scores import FREE, MODEL
from ciplearn.learning import Frontier
from ciplearn.learning.frontier import Point
from ciplearn.repairing import Repaired, repair
from ciplearn.report import Report
from ciplearn.report.content import PROFILES
from ciplearn.report.sections import BiasAudit
from ciplearn.routes import ROUTES
from ciplearn.routes.beside import Unconstrained
from ciplearn.scm import StructuralCausalModel, fit_scm
from ciplearn.scm.scm_file import read_scm

# Options that say where to read, where to write and what to show.
_NOT_REPEATED = ("model", "table", "out", "config", "help_all", "as_json", "preset")
_NOT_PROPOSED = {*_NOT_REPEATED, "strength", "predictor", "gate"} - {"preset"}  # the same rows hang on all others

# What an audit computes more or less of.
_COMPUTED = ("n_points", "n_interventions", "n_draws", "scm_rows", "doubt")

_REPAIRED_ROWS = 2000  # rows that a model is repaired from, to see whether that passes
_LEFT = (0.67, 0.33, 0.17)  # shares of what a repaired model leaves of an effect, tried before nothing is left


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
        named: dict[str, Any] = {"groups": split_names(asked.groups), "limits": Limits(most, asked.max_vcf)}
        draft = report_on(subject, call.effort, asked.seed, asked.scm, run_code=asked.run_code, **named)
        steps = _next_steps(subject, call)
        remedy, steps = _remedy(subject, call, draft, steps)
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
        draft = report_on(subject, call.effort, asked.seed, asked.scm, run_code=asked.run_code, compare=False)
        # Whatever the report asks about, so that nothing is missing when it is written.
        replace(draft, individuals=individuals or call.fixed_individuals(subject)).to_dict()
        rows = noted.rows()
        written.write(rows)
    if asked.as_json:
        say_json({"rows": len(rows), "columns": list(rows.columns), "file": printable(asked.out)})
        return
    say(f"Written: {printable(asked.out)}, {len(rows)} rows with {', '.join(rows.columns)}.")
    say(f"Next: predict them, keep {ID}, and pass the file to ciplearn audit --predictions with the same options.")


def report_on(
    subject: Audited,
    effort: Effort,
    seed: int,
    scm_file: Path | None = None,
    *,
    run_code: bool = False,
    groups: Sequence[str] | None = None,
    compare: bool = True,
    limits: Limits | None = None,
) -> Report:
    """Measure the model under a causal model that is given or estimated, and others beside it."""
    torch.set_num_threads(1)
    beside, how = _beside(subject) if compare else ({}, {})
    folder = subject.folder
    comparison = None if folder is None else folder.comparison
    # Said once below; models are asked about these rows and their worlds many times, until the command ends.
    warnings.simplefilter("ignore", OddRowsWarning)
    with progress("causal model", "step", total=3) as bar:
        # Rows that trained a model say too little about how it does on others.
        judging = sample_with_every_label(subject.rows, effort.scm_rows, as_generator(seed))
        if scm_file is None:
            scm: StructuralCausalModel = fit_scm(subject.verdict.graph, judging, None, seed)
        else:
            scm = read_scm(scm_file, subject.verdict.graph, run_code=run_code)
        bar.update()
        bar.set_description_str("counterfactuals")
        # Where nobody has named an effect, the limit that the fit has kept to; how far causal models of such rows
        # disagree, as the fit has found: unknown of a model from elsewhere.
        of_fit, floor = (None, None) if comparison is None else (comparison.limit, comparison.floor)
        limits = replace(limits or Limits(), of_fit=of_fit)
        found = _measured(subject, subject.model, scm, effort, seed, beside=beside, limits=limits, floor=floor)
        bar.update()
        bar.set_description_str("how wrong it may be")
        doubts = _doubts(subject, found, effort, seed) if compare and effort.doubt else {}
        bar.update()
    odd = [] if folder is None else OddRows.of(folder.model, subject.rows[list(folder.inputs)]).sentences(folder.model)
    for sentence in (*odd, *(finding.sentence for finding in found.vcf.doubts)):
        note(sentence)
    about = f"{subject.about[0].lower()}{subject.about[1:]}" if subject.about.startswith("All") else subject.about
    how |= {"groups": groups, "unknown": subject.unknown, "about_rows": f"Audited on: {about}"}
    return Report.of(found, doubts=doubts, **how, **_frontier(subject, found))


def _measured(
    subject: Audited, model: Any, scm: StructuralCausalModel, size: Any, seed: int, **more: Any
) -> evaluation.Audit:
    more = {name: getattr(size, name) for name in ("n_points", "n_interventions", "n_draws")} | more
    more = {"inputs": subject.inputs} | more
    # The verdict on the graph as it was drawn: an estimated model has its own version of latent nodes.
    return evaluation.audit(model, scm, subject.rows, verdict=subject.verdict, random_state=seed, **more)


def _beside(subject: Audited) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the model is measured beside, and how it was trained."""
    folder = subject.folder
    if folder is None:
        return {}, {"rule": f"{subject.model.name} was trained elsewhere; nothing is known of how."}
    trials = folder.trials
    # Of a repaired model, as it was.
    before = folder.model.at(0.0) if isinstance(folder.model, Repaired) else None
    free = None if is_unconstrained(folder.model) else subject.reordered(trials.get(0.0) or before)
    compared = {} if free is None else {FREE: free}
    if not subject.is_ours:
        rule = f"{subject.model.name} was trained elsewhere; {folder.path.name} was trained here."
        return {folder.path.name: subject.reordered(folder.model)} | compared, {"rule": rule}
    if folder.comparison is None:
        # Routes were judged by fit; trainings at other gammas are measured here.
        others = {gamma: model for gamma, model in trials.items() if gamma not in (0.0, folder.training["gamma"])}
        compared |= {_at(gamma): subject.reordered(model) for gamma, model in others.items()}
    return compared, {
        "comparison": folder.comparison,
        "chosen": folder.training["gamma"] if folder.comparison is None else None,
        "rule": _how_trained(folder),
        "penalty": _penalty_name(folder.model),
    }


def _doubts(subject: Audited, found: evaluation.Audit, effort: Effort, seed: int) -> dict[str, Any]:
    """Ask how wrong graph and causal model may be, on all rows: a graph has no training rows."""
    return how_wrong(
        subject.model,
        found.verdict,
        sample_with_every_label(subject.every, effort.scm_rows, as_generator(seed)),
        found.scm,
        vcf=found.vcf.value,
        context=found.vcf.context,
        inputs=found.inputs,
        method=None if found.method == "call" else found.method,
        limit=effort.doubt,
        # Ratios are read off, on the same rows for every graph.
        n_points=min(effort.n_points, 120),
        n_interventions=min(effort.n_interventions, 24),
        random_state=seed,
    )


def _frontier(subject: Audited, found: evaluation.Audit) -> dict[str, Any]:
    """Every model that was measured, as the audit's own was: with the gammas tried, or as baselines."""
    measured = {name: measures(one.vcf.value, one.scores) for name, one in found.beside.items()}
    if subject.folder is None or subject.folder.comparison is not None:
        return {}
    ours = measures(found.vcf.value, found.scores)
    if not subject.is_ours:
        return {"baselines": {name: (one["vcf"], one["loss"]) for name, one in {MODEL: ours, **measured}.items()}}
    training, points = subject.folder.training, []
    for trial in training["trials"]:
        gamma = trial["gamma"]
        name = FREE if gamma == 0 and FREE in measured else _at(gamma)
        figures = ours if gamma == training["gamma"] else measured[name]
        # The penalty is that of the rows that judged in training.
        kept = {key: value for key, value in trial["measures"].items() if key == "penalty"}
        points.append(Point(gamma, 0, figures | kept))
    return {"frontier": Frontier(tuple(points))} if points else {}


def _at(gamma: float) -> str:
    return f"gamma = {gamma:g}"


def measures(vcf: float, scores: Mapping[str, float]) -> dict[str, float]:
    """Return what candidates are told apart by, as a training measures them."""
    loss, score = ("mse", "r2") if "mse" in scores else ("log_loss", "accuracy")
    return {"loss": scores[loss], "score": scores[score], "vcf": vcf}


def _how_trained(folder: ModelFolder) -> str:
    training, model = folder.training, folder.model
    gamma, strength = training["gamma"], getattr(model, "strength", None)
    how = ROUTES.get(model.route_, Unconstrained).how.format(
        gamma="none" if gamma is None else f"{gamma:.3g}",
        penalty=_penalty_name(model),
        strength="at full strength" if strength == math.inf else f"at strength {strength or 0:.3g}",
    )
    if isinstance(model, Repaired) and model.is_blind:
        how += " What labels and counts that follow the protected columns tell of a single row was given up."
    if "comparison" in training:
        return f"{how} {training['remark']}"
    if training["tolerance"] is None:
        return f"{how} Gamma was fixed by hand."
    return (
        f"{how} It is the largest gamma tried that loses at most {training['tolerance']:.3g} of what a predictor "
        f"without a penalty explains, measured by its {training['measure']} on rows that training does not see. "
        f"{training['remark']}".strip()
    )


def _penalty_name(model: Any) -> str:
    if getattr(model, "penalty", None) is not None:
        return type(model.penalty).__name__
    return "ResidualHSCIC" if getattr(model, "independence_", None) and model.independence_.given else "HSIC"


def _remedy(subject: Audited, asked: AuditCall, report: Report, steps: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What was tried where a model of ours fails, itself repaired further, and what to type next."""
    if report.conclusion.state != FAILS:
        return "", steps
    if few := too_few_rows(report.audit):
        return " ".join(few), steps
    further = stricter(subject, report.audit, asked.asked.seed) if asked.effort.doubt else None
    if further is None or asked.folder is None:
        return "", steps
    strength, end = further[0], further[1].conclusion.state
    if end != PASSES:
        how = {FAILS: "still fails", USELESS: "is useless"}.get(end, "cannot be told from these rows to pass")
        del steps[FAILS]
        advice = "Ask for a larger limit, let it read other columns, or collect more rows."
        return f"Nothing useful passes: repaired in full, this model {how}. {advice}", steps
    name, table = printable(Path(asked.folder.path.name)), shlex.quote(printable(Path(asked.table.name)))
    more = {
        each.name: f" --{each.name.replace('_', '-')}" + f" {shlex.quote(str(value))}" * (value is not True)
        for each in fields(asked.asked)
        if (value := getattr(asked.asked, each.name)) != each.default and each.name not in _NOT_PROPOSED
    }
    config = shlex.quote(f"{name}/{OPTIONS}") + more.get("graph", "")
    steps[FAILS] = f"ciplearn fit {table} --config {config} --strict --out stricter"
    if isinstance(asked.folder.model, Repaired):
        named = f"{_model_named(asked.folder)} {table} --strength {strength:g}"
        steps[FAILS] = f"ciplearn audit {named}{''.join(more.values())}"
    how = "in full" if math.isinf(strength) else f"at strength {strength:g}"
    return f"Repaired {how}, this model passes on the same rows.", steps


def stricter(subject: Audited, found: evaluation.Audit, seed: int) -> tuple[float, evaluation.Audit] | None:
    """Audit this model of ours repaired further, on the same rows and worlds; None where nothing repairs it.

    Returns the first strength that passes, of some that leave less and less, or else the strict end.
    """
    if subject.folder is None or not subject.is_ours:
        return None
    model, roles, strengths = subject.folder.model, subject.verdict, [math.inf]
    try:
        if isinstance(model, Repaired):
            repaired = model
            strengths = sorted({*(float(f"{(1 + model.strength) / left - 1:.3g}") for left in _LEFT), math.inf})
        else:
            # Of a large table, rows that judge need not be among those that were drawn from all.
            others = subject.every[~subject.every.index.isin(subject.rows.index)]
            seen = sample_with_every_label(others, _REPAIRED_ROWS, as_generator(seed))
            named: dict[str, Any] = {"outcome": roles.outcome, "protected": list(roles.protected)}
            named |= {"inputs": subject.folder.shown, "random_state": seed}
            repaired = repair(model, seen, graph=roles.graph, **named)
        # What is repaired also needs what lies between the protected columns and those that the model reads.
        read = list(dict.fromkeys([*subject.inputs, *repaired.inputs_]))
        how: dict[str, Any] = {"limits": found.limits, "floor": found.floor, "inputs": read}
        with progress("what would pass", "strength", total=len(strengths)) as bar:
            for strength in strengths:
                again = subject.reordered(repaired.at(strength))
                audit = _measured(subject, again, found.scm, found.vcf, seed, **how)
                bar.update()
                if audit.conclusion.state == PASSES:
                    break
            bar.total = bar.n
        return strength, audit
    except CiplearnError as error:
        note(f"What would pass could not be tried: {error}")
        return None


def _settings(call: AuditCall, out: Path) -> dict[str, dict[str, Any]]:
    """What repeats the audit, and the training before it, as option files; a flag that is off is none, zero is one."""
    folder, words = call.folder, [printable(Path(path.name)) for path in call.places]
    given = {
        name: printable(Path(value.name)) if isinstance(value, Path) else value
        for name, value in vars(call.asked).items()
        if name not in _NOT_REPEATED and value is not None and value is not False
    }
    effort = {name.removeprefix("n_"): getattr(call.effort, name) for name in _COMPUTED}
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
