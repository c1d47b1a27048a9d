"""Run a study and write what it found; a study that is done is not run again."""

from __future__ import annotations

import importlib.metadata
import io
import json
import math
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ciplearn import __version__
from ciplearn._core.errors import InputError
from ciplearn.experiments.reproduction import fingerprints
from ciplearn.experiments.reproduction.markdown import section
from ciplearn.experiments.reproduction.study import Conditions, Findings, Study
from ciplearn.experiments.reproduction.writing import make_folder, write

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")

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
    jobs: int = 1,
    progress: bool = False,
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run a study and return what is in its ``result.json``.

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
    jobs : int
        Processes on a CPU.
    progress : bool
    options : mapping, optional
        For one study alone; see `Conditions`.
    """
    if preset not in study.presets:
        raise InputError(f"{study.name} has no preset {preset!r}; name one of {', '.join(study.presets)}.")
    import torch

    from ciplearn.learning.settings import chosen_device

    settings, kind = study.presets[preset], chosen_device(device).type
    folder = out / study.name
    key = fingerprints.of_result(study.name, settings, seed, kind, dict(options or {}))
    done = _finished(folder, key)
    if done is not None:
        return done
    make_folder(folder)
    if kind == "cpu":
        # Processes do the work there; two threads on two busy cores are many times slower than one.
        torch.set_num_threads(1)
    conditions = Conditions(seed, kind, _work_folder(out), jobs, progress, dict(options or {}))
    start = time.perf_counter()
    findings = study.run(settings, conditions)
    result = _plain(
        {
            "study": study.name,
            "title": study.title,
            "preset": preset,
            "command": f"ciplearn reproduce {study.name} --preset {preset} --seed {seed}",
            "seed": seed,
            "seconds": round(time.perf_counter() - start, 1),
            "reused": sorted(conditions.reused),
            "device": torch.cuda.get_device_name() if kind == "cuda" else f"CPU, {jobs} processes",
            "settings": asdict(settings),
            "versions": _versions(),
            "fingerprint": key,
            "code": fingerprints.code(),
            "claims": [asdict(claim) for claim in findings.claims],
            "paper": dict(study.paper),
            "comparisons": [
                {
                    "caption": comparison.caption,
                    "columns": [str(name) for name in comparison.table.columns],
                    "rows": comparison.table.to_dict(orient="records"),
                }
                for comparison in findings.comparisons
            ],
            "unmatched": [asdict(entry) for entry in findings.unmatched],
            "notes": list(findings.notes),
            "caption": findings.caption,
            **_write_parts(folder, findings),
        }
    )
    write(folder / "result.md", section(result, study.remarks))
    # Last: a folder with this file in it is whole.
    write(folder / "result.json", json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return result


def _finished(folder: Path, key: str) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("fingerprint") == key else None


def _work_folder(out: Path) -> Path:
    folder = out / ".work"
    make_folder(folder)
    write(folder / ".gitignore", "*\n")
    return folder


def _write_parts(folder: Path, findings: Findings) -> dict[str, Any]:
    tables = []
    for name, frame in findings.tables.items():
        tables.append(f"{name}.csv")
        write(folder / tables[-1], frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    figure = ""
    if findings.figure is not None:
        figure = "figure.png"
        write(folder / figure, _picture(findings.figure))
    return {"tables": tables, "figure": figure}


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


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers of numpy as Python's own, None for what is not finite, text for all else."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
