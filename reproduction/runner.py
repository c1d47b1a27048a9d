"""Measure a study, judge what was measured, and write both; a study that is done is not run again."""

from __future__ import annotations

import importlib.metadata
import io
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ciplearn import __version__
from ciplearn._core.errors import InputError
from ciplearn._core.files import make_folder, write_file
from ciplearn._core.plain_data import as_data
from reproduction import fingerprints
from reproduction.markdown import section
from reproduction.study import Conditions, Study

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")
_MEASURED, _RESULT = "measured.json", "result.json"

# Figures are drawn as finely as this many bytes allow.
_FIGURE_BYTES = 200_000
_FIGURE_DPI = (150, 110, 80, 60)


def reproduce(
    study: Study,
    preset: str,
    out: Path,
    *,
    seed: int = 0,
    device: str = "auto",
    n_jobs: int = 1,
    verbose: bool = False,
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Measure a study, judge it and return what is in its ``result.json``.

    Parameters
    ----------
    study : Study
    preset : str
        ``"quick"`` or ``"paper"``.
    out : Path
        The study gets a folder of its own in it. If that holds a result of the same settings, seed, kind of device and
        code, it is returned as it is.
    seed : int
    device : str
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    n_jobs : int
        Processes on a CPU.
    verbose : bool
    options : mapping, optional
        For one study alone; see `Conditions`.
    """
    key = fingerprints.of_result(*_run(study, preset, seed, device, options))
    done = _read(out / study.name / _RESULT)
    if done is not None and done.get("fingerprint") == key:
        return done
    measure(study, preset, out, seed=seed, device=device, n_jobs=n_jobs, verbose=verbose, options=options)
    return judge(study, out)


def measure(
    study: Study,
    preset: str,
    out: Path,
    *,
    seed: int = 0,
    device: str = "auto",
    n_jobs: int = 1,
    verbose: bool = False,
    options: Mapping[str, str] | None = None,
) -> None:
    """Write the tables of a study and ``measured.json``, which says how they came about; see `reproduce`."""
    import torch

    run = _run(study, preset, seed, device, options)
    settings, kind = study.presets[preset], run[3]
    folder = out / study.name
    make_folder(folder)
    if kind == "cpu":
        # Processes do the work there; two threads on two busy cores are many times slower than one.
        torch.set_num_threads(1)
    conditions = Conditions(seed, kind, _work_folder(out), n_jobs, verbose, dict(options or {}))
    start = time.perf_counter()
    tables = study.measure(settings, conditions)
    took = round(time.perf_counter() - start, 1)
    for name, frame in tables.items():
        write_file(folder / f"{name}.csv", frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    measured = {
        "study": study.name,
        "preset": preset,
        "seed": seed,
        "seconds": took,
        "reused": sorted(conditions.reused),
        "device": torch.cuda.get_device_name() if kind == "cuda" else f"CPU, {n_jobs} processes",
        "settings": settings,
        "versions": _versions(),
        "fingerprint": fingerprints.of_result(*run),
        "code": fingerprints.code(),
        "tables": [f"{name}.csv" for name in tables],
    }
    # Last: a folder with this file in it is whole.
    _write_json(folder / _MEASURED, as_data(measured))


def judge(study: Study, out: Path) -> dict[str, Any]:
    """Judge the tables in a study's folder, write what they say and return what is in ``result.json``.

    ``remarks`` in ``measured.json``, sentences about where the numbers come from, are repeated beside the notes.
    """
    folder = out / study.name
    measured = _read(folder / _MEASURED)
    if measured is None:
        raise InputError(f"{folder} holds nothing that was measured; run python -m reproduction {study.name} first.")
    settings = _settings(study.presets[measured["preset"]], measured["settings"])
    tables = {name.removesuffix(".csv"): pd.read_csv(folder / name) for name in measured["tables"]}
    findings = study.judge(tables, settings)
    figure = ""
    if findings.figure is not None:
        figure = "figure.png"
        write_file(folder / figure, _picture(findings.figure))
    result: dict[str, Any] = as_data(
        {
            **measured,
            "title": study.title,
            "command": f"python -m reproduction {study.name} --preset {measured['preset']} --seed {measured['seed']}",
            "claims": findings.claims,
            "paper": study.paper,
            "comparisons": [
                {"caption": one.caption, "columns": list(map(str, one.table.columns)), "rows": one.table}
                for one in findings.comparisons
            ],
            "unmatched": findings.unmatched,
            "notes": [*findings.notes, *measured.get("remarks", ())],
            "caption": findings.caption,
            "figure": figure,
        }
    )
    write_file(folder / "result.md", section(result, study.remarks))
    _write_json(folder / _RESULT, result)
    return result


def has_measured(study: Study, out: Path) -> bool:
    """Whether a folder holds a study's numbers."""
    return (out / study.name / _MEASURED).exists()


def _run(
    study: Study, preset: str, seed: int, device: str, options: Mapping[str, str] | None
) -> tuple[str, Any, int, str, dict[str, str]]:
    """What tells one run from another, beside the code."""
    if preset not in study.presets:
        raise InputError(f"{study.name} has no preset {preset!r}; name one of {', '.join(study.presets)}.")
    from ciplearn.learning.settings import chosen_device

    return study.name, study.presets[preset], seed, chosen_device(device).type, dict(options or {})


def _settings(preset: Any, kept: Mapping[str, Any]) -> Any:
    """Settings from JSON; what an earlier version did not keep is the preset's."""
    known = {name: value for name, value in kept.items() if hasattr(preset, name)}
    for name, value in known.items():
        own = getattr(preset, name)
        if is_dataclass(own):
            known[name] = _settings(own, value)
        elif isinstance(value, list):
            known[name] = tuple(value)
    return replace(preset, **known)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write_json(path: Path, content: Any) -> None:
    write_file(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _work_folder(out: Path) -> Path:
    folder = out / ".work"
    make_folder(folder)
    write_file(folder / ".gitignore", "*\n")
    return folder


def _picture(figure: Any) -> bytes:
    """The finest picture that is small enough to keep."""
    picture = b""
    for dpi in _FIGURE_DPI:
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=dpi)
        picture = stream.getvalue()
        if len(picture) <= _FIGURE_BYTES:
            break
    return picture


def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"ciplearn": __version__, "python": platform.python_version(), **packages}
