"""What made the imagined rows of a saved model, kept in its folder.

A causal model with a ``save(path)`` writes its file, and a mechanism that cannot be kept as data is an error; a model
without ``save``, such as one of known equations, is named on the card. Estimators never know the kind of such a model,
so whoever loads one passes what reads its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn._core.files import checksum
from ciplearn._core.listed_folders import read_listed
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.imagining import checked_models
from ciplearn.estimators.preparation import COUNTERFACTUAL

# In MiB: mechanisms may keep the noise of every training row.
_LARGEST = 1 << 12


def write_models(model: CIPEstimator, folder: Path, *, files: bool) -> list[dict[str, Any]]:
    """Write what made the imagined rows into a folder, and return what to say about it.

    Parameters
    ----------
    model : CIPRegressor or CIPClassifier
        Fitted.
    folder : Path
    files : bool
        Whether the models themselves are written, or only said.

    Returns
    -------
    list of dict
        Per model ``said``, ``kind``, ``file`` and its ``sha256``; the last two are None where there is no file.
    """
    if model.route_ != COUNTERFACTUAL:
        return []
    if model.counterfactuals is None:
        return [{"said": "worlds that were passed to fit", "kind": None, "file": None, "sha256": None}]
    entries = []
    for place, one in enumerate(checked_models(model.counterfactuals), start=1):
        name = f"counterfactuals-{place}.safetensors"
        written = files and _written(one, folder / name)
        digest = checksum(folder / name) if written else None
        kept = {"file": name if written else None, "sha256": digest}
        entries.append({"said": str(one), "kind": type(one).__name__, **kept})
    return entries


def read_models(folder: Path, entries: list[Any], reader: Callable[[Path], Any]) -> Any:
    """Read back what `write_models` wrote: one model, a list of several, or None where a file is missing."""
    files = [entry["file"] if isinstance(entry, dict) else None for entry in entries]
    if not files or None in files:
        return None
    models = []
    for entry in entries:
        if re.fullmatch(r"counterfactuals-\d+\.safetensors", entry["file"]) is None:
            raise ValueError(entry["file"])  # of another folder, perhaps
        if checksum(read_listed(folder, entry["file"], _LARGEST)) != entry["sha256"]:
            raise InputError(f"{folder / entry['file']} was changed since it was saved; save the model anew.")
        models.append(reader(folder / entry["file"]))
    return models[0] if len(models) == 1 else models


def _written(one: Any, path: Path) -> bool:
    save = getattr(one, "save", None)
    if not callable(save):
        return False
    try:
        save(path)
    except InputError as error:
        raise InputError(
            f"{error} Or leave the causal model out with save_model(..., counterfactuals=False)."
        ) from error
    return path.is_file()
