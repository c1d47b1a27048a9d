"""The causal models that imagined the rows of a training, beside the model that was trained on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn._core.files import checksum, read_listed
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.imagined import checked_models

_LARGEST_MODEL = 1 << 12  # in MiB: the mechanisms of a causal model may keep the noise of every training row


def write_models(model: CIPEstimator, folder: Path, *, files: bool) -> list[dict[str, Any]]:
    """Write the causal models that imagined training rows, and return what to say about each.

    One with a ``save(path)`` writes its file, and a mechanism that cannot be kept as data is an error; one without,
    such as a model of known equations, is only named. Whoever loads a model passes what reads its file.
    """
    if model.counterfactuals is None:
        return [{"said": "worlds that were passed to fit", "kind": None, "file": None, "sha256": None}]
    entries = []
    for number, causal_model in enumerate(checked_models(model.counterfactuals), start=1):
        path = folder / f"counterfactuals-{number}.safetensors"
        save = getattr(causal_model, "save", None)
        if files and callable(save):
            try:
                save(path)
            except InputError as error:
                advice = "Or leave the causal model out with save_model(..., counterfactuals=False)."
                raise InputError(f"{error} {advice}") from error
        kept = {"file": path.name, "sha256": checksum(path)} if path.is_file() else {"file": None, "sha256": None}
        entries.append({"said": str(causal_model), "kind": type(causal_model).__name__, **kept})
    return entries


def read_models(folder: Path, entries: list[Any], reader: Callable[[Path], Any]) -> Any:
    """Return the model, or the models, that `write_models` has kept; None where one of them was only named."""
    files = [entry["file"] if isinstance(entry, dict) else None for entry in entries]
    if not files or None in files:
        return None
    models = []
    for entry in entries:
        if re.fullmatch(r"counterfactuals-\d+\.safetensors", entry["file"]) is None:
            raise ValueError(entry["file"])  # of another folder, perhaps
        if checksum(read_listed(folder, entry["file"], _LARGEST_MODEL)) != entry["sha256"]:
            raise InputError(f"{folder / entry['file']} was changed since it was saved; save the model anew.")
        models.append(reader(folder / entry["file"]))
    return models[0] if len(models) == 1 else models
