"""A repaired model as a folder: numbers and text, of which nothing is ever run."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import check_finished, listed_folder, read_listed
from ciplearn._core.plain_data import is_number
from ciplearn.estimators.base import CIPEstimator
from ciplearn.evaluation.conclusion import Floor
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.conformal import Conformal
from ciplearn.repairing.correction import N_STRENGTHS, Correction, TreeScale, boosting
from ciplearn.repairing.formula import BlindFormula, Engine, Formula
from ciplearn.repairing.measured import BLIND, CORRECTION, FORMULA, Curve
from ciplearn.repairing.ratio import Levels, NoCauses, OfLevels, OfNumbers, OfPairs, Ratio
from ciplearn.repairing.tree_text import check_trees
from ciplearn.repairing.worlds import Worlds
from ciplearn.saving import load_model, save_model
from ciplearn.saving.folder import as_path, from_spec, to_spec
from ciplearn.scm import EstimatedModel, StructuralCausalModel

if TYPE_CHECKING:
    from ciplearn.repairing.repaired import Repaired

_FORMAT = 1
DESCRIPTION, _SCM, _RATIO, _TREES = "repaired.json", "scm.safetensors", "ratio.safetensors", "correction.txt"
_OURS, _ONNX, _BOOSTED = "model", "model.onnx", "model.txt"
_LARGEST = 1 << 12
_CURVE = ("strength", "change", "vcf", "left", "effect")
_ROUNDING = 1e-6
_LISTED = [each.__name__ for each in (NoCauses, OfLevels)]
_UNLISTED = [each.__name__ for each in (NoCauses, OfNumbers, OfPairs)]


def save_repaired(repaired: Repaired, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a repaired model: its causal model, ratio, trees and strength, and the model itself where that is data."""
    target, worlds, asked, floor = as_path(folder), repaired.worlds, repaired.asked, repaired.floor
    with listed_folder(target, overwrite=overwrite) as fresh:
        described = {
            "format": _FORMAT,
            "outcome": repaired.outcome,
            "protected": worlds.protected,
            "inputs": asked.inputs,
            "kinds": {name: _dtype(kind) for name, kind in asked.kinds.items()},
            "classes": None if asked.classes is None else asked.classes.tolist(),
            "levels": {name: worlds.levels.values[name].tolist() for name in worlds.levels.values.columns},
            "shares": worlds.levels.shares.tolist(),
            "listed": worlds.levels.listed,
            "seed": worlds.seed,
            "strength": _number(repaired.strength),
            "rests_on": repaired.rests_on,
            "notes": repaired.notes,
            "floor": floor and {"left": floor.left, "typical": floor.effect, "n_rows": floor.rows // 2},
            "curve": {name: [_number(x) for x in column] for name, column in repaired.curve.items()},
            "scores": None if repaired.conformal is None else [_number(x) for x in repaired.conformal.scores],
            "model": _write_model(asked.model, fresh),
            "ratio": _write_ratio(worlds.ratio, fresh),
            "scm": isinstance(worlds.scm, EstimatedModel),
        }
        if isinstance(worlds.scm, EstimatedModel):
            worlds.scm.save(fresh / _SCM)
        if isinstance(repaired.engine, Correction):
            trees = repaired.engine
            (fresh / _TREES).write_text(trees.booster.model_to_string(), encoding="utf-8")
            spread = trees.scale.spread.tolist()
            described["correction"] = {"encoding": to_spec(trees.encoding), "ends": trees.ends, "spread": spread}
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
        (fresh / DESCRIPTION).write_text(text, encoding="utf-8")
    return target


def load_repaired(
    folder: str | os.PathLike[str], model: Any = None, *, scm: StructuralCausalModel | None = None
) -> Repaired:
    """Read what `Repaired.save` has written.

    Parameters
    ----------
    folder : path
    model : optional
        The model that was repaired, where the folder cannot hold it: it holds networks of ciplearn, ONNX files and
        LightGBM's models by their scikit-learn face.
    scm : StructuralCausalModel, optional
        The causal model, where it was known and not estimated.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import datasets, load_repaired, repair
    >>> world = datasets.applicants()
    >>> people = world.sample(100, random_state=0)
    >>> model = lambda frame: frame["hours"]
    >>> repaired = repair(model, people, scm=world, outcome="income", protected="sex")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_repaired(repaired.save(f"{folder}/repaired"), model=model, scm=world)
    >>> again.predict(people).tolist() == repaired.predict(people).tolist()
    True
    """
    place = as_path(folder)
    if not os.path.exists(place / DESCRIPTION):
        raise InputError(f"{folder} is no repaired model; pass the folder that save has written.")
    check_finished(place)
    try:
        return _restored(json.loads(read_listed(place, DESCRIPTION)), place, model, scm)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError, OverflowError) as error:
        if isinstance(error, CiplearnError):
            raise
        raise InputError(f"{place / DESCRIPTION} fits no repaired model of this version; save it anew.") from error


def _restored(said: dict[str, Any], place: Path, model: Any, scm: StructuralCausalModel | None) -> Repaired:
    from ciplearn.repairing.repaired import Repaired

    if said["format"] != _FORMAT:
        raise InputError(f"{place} has format {said['format']!r:.40}, this ciplearn reads {_FORMAT}; update ciplearn.")
    _refuse_changed(said)
    if said["scm"]:
        read_listed(place, _SCM, _LARGEST)
        scm = EstimatedModel.load(place / _SCM)
    if scm is None:
        raise InputError(f"{place} was repaired by a known causal model, which no file holds; pass it as scm=.")
    kinds = {name: _read_dtype(kind) for name, kind in said["kinds"].items()}
    classes = None if said["classes"] is None else np.array(said["classes"])
    asked = Asked.restored(_read_model(said["model"], place, model), tuple(said["inputs"]), kinds, classes)
    levels = Levels(pd.DataFrame(said["levels"]), np.array(said["shares"], dtype=float), bool(said["listed"]))
    protected = tuple(said["protected"])
    if set(levels.values.columns) != set(scm.columns(protected)):
        raise ValueError("levels are not those of the protected columns")
    ratio = _read_ratio(said["ratio"], place, levels, scm, protected)
    worlds = Worlds(scm, protected, asked.inputs, levels, ratio, int(said["seed"]), (said["outcome"],))
    engine: Engine = (BlindFormula if said["rests_on"] == BLIND else Formula)(asked, worlds)
    if said["rests_on"] == CORRECTION:
        engine = _correction(said["correction"], asked, worlds, _booster(place, _TREES))
    curve = pd.DataFrame({name: [_read_number(x) for x in column] for name, column in said["curve"].items()})
    floor = said["floor"]
    scores = None if said["scores"] is None else Conformal(np.array([_read_number(x) for x in said["scores"]]))
    return Repaired(
        asked,
        worlds,
        engine,
        Curve(lambda: curve),
        str(said["outcome"]),
        strength=_read_number(said["strength"]),
        rests_on=str(said["rests_on"]),
        floor=floor and Floor(floor["typical"], math.nan, 2 * floor["n_rows"], floor["left"]),
        notes=tuple(said["notes"]),
        conformal=scores,
    )


def _correction(said: dict[str, Any], asked: Asked, worlds: Worlds, booster: Any) -> Correction:
    encoding, ends, spread = from_spec(said["encoding"]), said["ends"], said["spread"]
    answers = booster.num_model_per_iteration()
    whole = {
        "encoding": isinstance(encoding, TableEncoding) and {*encoding.names} <= {*worlds.columns},
        "features": booster.num_feature() == encoding.width + answers,
        "ends": len(ends) == N_STRENGTHS and _rise(ends) and {*map(type, ends)} == {int},
        "trees": ends[-1] * answers == booster.num_trees(),
        "spread": _are(float, spread) and min(spread) > 0 and len(spread) in (1, answers),
    }
    for name, holds in whole.items():
        if not holds:
            raise ValueError(f"{name} was changed")
    return Correction(asked, encoding, booster, tuple(ends), TreeScale(asked.classes is not None, np.array(spread)))


def _refuse_changed(said: dict[str, Any]) -> None:
    """Refuse a description that no repair leaves: what reads it would fail later, or predict nonsense."""
    shares, levels, curve, floor = (said[name] for name in ("shares", "levels", "curve", "floor"))
    ratio = said["ratio"]["kind"]
    whole = {
        "protected": _are(str, said["protected"]) and list(levels) == list(dict.fromkeys(levels)) != [],
        "inputs": _are(str, said["inputs"])
        and len({*said["inputs"]}) == len(said["inputs"])
        and said["outcome"] not in (*said["inputs"], *said["protected"]),
        "levels": all(len(values) == len(shares) and all(map(_is_level, values)) for values in levels.values()),
        "kinds": all(isinstance(kind, str | dict) for kind in said["kinds"].values()),
        "shares": _are(float, shares) and min(shares) > 0 and abs(sum(shares) - 1) < _ROUNDING,
        "seed": type(said["seed"]) is int and said["seed"] >= 0,
        "strength": said["strength"] is None or (_are(float, [said["strength"]]) and said["strength"] >= 0),
        "rests_on": said["rests_on"] in (FORMULA, CORRECTION, BLIND),
        "notes": said["notes"] == [] or _are(str, said["notes"]),
        "classes": said["classes"] is None or _are_labels(said["classes"]),
        "curve": set(curve) == set(_CURVE) and _rise(curve["strength"]) and all(map(_positive, curve.values())),
        "scores": said["scores"] is None or said["scores"] == [] or _rise(said["scores"]),
        "floor": floor is None or (_are(float, list(floor.values())) and 2 * floor["n_rows"] < math.inf),
        "listed": type(said["listed"]) is bool,
        "ratio": ratio in _LISTED if said["listed"] else ratio in _UNLISTED,
    }
    for name, holds in whole.items():
        if not holds:
            raise ValueError(f"{name} was changed")


def _is_level(value: Any) -> bool:
    return isinstance(value, str | bool) or is_number(value)


def _are_labels(values: Any) -> bool:
    return isinstance(values, list) and all(map(_is_level, values)) and len({*values}) == len(values) >= 2


def _are(kind: type, values: Any) -> bool:
    """Whether a list of JSON holds names, or finite numbers, at least one."""
    if not isinstance(values, list) or not values:
        return False
    if kind is str:
        return all(isinstance(value, str) for value in values)
    return all(map(is_number, values))


def _positive(values: list[float | None]) -> bool:
    """Whether a list of JSON holds numbers of at least zero; none is infinity."""
    numbers = [0.0 if value is None else value for value in values]
    return _are(float, numbers) and min(numbers) >= 0


def _rise(values: list[float | None]) -> bool:
    """Whether such numbers stand in order."""
    return _positive(values) and sorted(map(_read_number, values)) == list(map(_read_number, values))


def _write_model(model: Any, folder: Path) -> str | None:
    """Write the model where it is data, and return the name of what was written."""
    if isinstance(model, CIPEstimator):
        save_model(model, folder / _OURS)
        return _OURS
    if isinstance(model, str | Path):
        (folder / _ONNX).write_bytes(Path(model).read_bytes())
        return _ONNX
    if type(model).__module__ == "lightgbm.sklearn":
        (folder / _BOOSTED).write_text(model.booster_.model_to_string(), encoding="utf-8")
        return _BOOSTED
    return None


def _read_model(kept: str | None, place: Path, model: Any) -> Any:
    if model is not None:
        return model
    if kept == _OURS:
        return load_model(place / _OURS)
    if kept == _ONNX:
        read_listed(place, _ONNX, _LARGEST)
        return place / _ONNX
    if kept == _BOOSTED:
        return _booster(place, _BOOSTED).predict
    raise InputError(f"{place} does not hold the model that was repaired; pass it as model= (--predictor MODULE:NAME).")


def _booster(place: Path, name: str) -> Any:
    lightgbm, text = boosting(), read_listed(place, name, _LARGEST).decode()
    try:
        check_trees(text)
        return lightgbm.Booster(model_str=text)
    except (KeyError, ValueError, lightgbm.basic.LightGBMError) as error:
        raise InputError(f"{place / name} is no model of LightGBM; save the repaired model anew.") from error


def _write_ratio(ratio: Ratio, folder: Path) -> dict[str, Any]:
    if isinstance(ratio, OfLevels | OfPairs):
        ratio.model.save(folder / _RATIO)
    kept: dict[str, Any] = {"kind": type(ratio).__name__}
    if isinstance(ratio, OfNumbers):
        kept["causes"] = {name: ratio.causes[name].tolist() for name in ratio.causes.columns}
        kept["grid"] = None if ratio.grid is None else [part.tolist() for part in ratio.grid]
    return kept


def _read_ratio(
    said: dict[str, Any], place: Path, levels: Levels, scm: StructuralCausalModel, protected: tuple[str, ...]
) -> Ratio:
    if said["kind"] == NoCauses.__name__:
        return NoCauses()
    if said["kind"] == OfNumbers.__name__:
        grid = None if said["grid"] is None else (np.array(said["grid"][0]), np.array(said["grid"][1]))
        return OfNumbers(scm, protected[0], pd.DataFrame(said["causes"]), grid)
    read_listed(place, _RATIO, _LARGEST)
    model = EstimatedModel.load(place / _RATIO)
    return OfLevels(levels, model) if said["kind"] == OfLevels.__name__ else OfPairs(model)


def _dtype(kind: Any) -> Any:
    if isinstance(kind, pd.CategoricalDtype):
        return {"categories": kind.categories.tolist(), "ordered": bool(kind.ordered)}
    return str(kind)


def _read_dtype(said: Any) -> Any:
    if isinstance(said, dict):
        return pd.CategoricalDtype(said["categories"], said["ordered"])
    return pd.api.types.pandas_dtype(said)


def _number(value: Any) -> float | None:
    """JSON knows no infinity."""
    return None if math.isinf(value) else float(value)


def _read_number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"A repaired model with {value!r} among its labels cannot be saved; use plain labels.")
