"""Models as folders, trained here or repaired: numbers and text, of which nothing is ever run."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ciplearn._core.arguments import is_number
from ciplearn._core.encoding import TableEncoding
from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.files import check_finished, listed_folder, read_listed
from ciplearn.estimators.base import CIPEstimator
from ciplearn.evaluation.any_model import onnx_session
from ciplearn.evaluation.conclusion import Floor
from ciplearn.repairing.asked import Asked
from ciplearn.repairing.correction import N_STRENGTHS, Correction, TreeScale, boosting
from ciplearn.repairing.formula import BlindEnd, Engine, Formula
from ciplearn.repairing.measured import CORRECTION, FORMULA, Conformal, Curve
from ciplearn.repairing.ratio import Levels, NoCauses, OfLevels, OfNumbers, OfPairs, Ratio
from ciplearn.repairing.tree_text import check_trees
from ciplearn.repairing.worlds import Worlds
from ciplearn.saving import folder as trained
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


def save_model(model: Any, folder: str | os.PathLike[str], scores: dict[str, float] | None = None, **more: Any) -> Path:
    """Write a fitted model; the folder appears whole or not at all.

    Parameters
    ----------
    model : CIPRegressor, CIPClassifier or Repaired
    folder : path
        Of a folder that holds a saved model, only the files of that model are replaced; a folder that holds anything
        else is refused.
    scores : mapping of name to number, optional
        What to say about the model on its card.
    more
        ``overwrite=False`` refuses to replace a saved model; ``counterfactuals=False`` leaves out causal models that
        imagined training rows. One that cannot be written as data is named all the same.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import CIPRegressor, load_model, save_model
    >>> model = CIPRegressor(epochs=2, random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(model, f"{folder}/model")).predict([[2.0]]) == model.predict([[2.0]])
    array([ True])
    """
    from ciplearn.repairing.repaired import Repaired

    if isinstance(model, Repaired):
        return save_repaired(model, folder, overwrite=more.get("overwrite", True))
    return trained.save_model(model, folder, scores, **more)


def load_model(folder: str | os.PathLike[str], module: Any = None, device: str = "cpu", **more: Any) -> Any:
    """Read a model that `save_model` has written.

    Parameters
    ----------
    folder : path
    module : torch.nn.Module, or a function that returns one, optional
        A network of the same architecture, for a model that was trained with its own ``module``.
    device : str
    more
        ``counterfactuals=EstimatedModel.load`` reads the causal model that imagined training rows; ``model=`` and
        ``scm=`` pass the model of a repair and a known causal model, where the folder does not hold them.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import CIPRegressor, load_model, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = save_model(CIPRegressor(epochs=2).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), f"{folder}/model")
    ...     load_model(kept).epochs
    2
    """
    place = as_path(folder)
    if os.path.exists(place / DESCRIPTION):
        return load_repaired(place, more.get("model"), scm=more.get("scm"))
    return trained.load_model(folder, module, device, **more)


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
            "blind": isinstance(repaired.engine, BlindEnd),
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
        trees = repaired.engine.seeing if isinstance(repaired.engine, BlindEnd) else repaired.engine
        if isinstance(trees, Correction):
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


def _restored(saved: dict[str, Any], place: Path, model: Any, scm: StructuralCausalModel | None) -> Repaired:
    from ciplearn.repairing.repaired import Repaired

    if saved["format"] != _FORMAT:
        raise InputError(f"{place} has format {saved['format']!r:.40}, this ciplearn reads {_FORMAT}; update ciplearn.")
    _refuse_changed(saved)
    if saved["scm"]:
        read_listed(place, _SCM, _LARGEST)
        scm = EstimatedModel.load(place / _SCM)
    if scm is None:
        raise InputError(f"{place} was repaired by a known causal model, which no file holds; pass it as scm=.")
    kinds = {name: _read_dtype(kind) for name, kind in saved["kinds"].items()}
    classes = None if saved["classes"] is None else np.array(saved["classes"])
    asked = Asked.restored(_read_model(saved["model"], place, model), tuple(saved["inputs"]), kinds, classes)
    levels = Levels(pd.DataFrame(saved["levels"]), np.array(saved["shares"], dtype=float), bool(saved["listed"]))
    protected = tuple(saved["protected"])
    if set(levels.values.columns) != set(scm.columns(protected)):
        raise ValueError("levels are not those of the protected columns")
    ratio = _read_ratio(saved["ratio"], place, levels, scm, protected)
    worlds = Worlds(scm, protected, asked.inputs, levels, ratio, int(saved["seed"]), (saved["outcome"],))
    engine: Engine = Formula(asked, worlds)
    if saved["rests_on"] == CORRECTION:
        engine = _correction(saved["correction"], asked, worlds, _booster(place, _TREES))
    engine = BlindEnd(engine, worlds) if saved["blind"] else engine
    curve = pd.DataFrame({name: [_read_number(x) for x in column] for name, column in saved["curve"].items()})
    floor = saved["floor"]
    scores = None if saved["scores"] is None else np.array([_read_number(x) for x in saved["scores"]])
    return Repaired(
        asked,
        worlds,
        engine,
        Curve(lambda: curve),
        str(saved["outcome"]),
        strength=_read_number(saved["strength"]),
        rests_on=str(saved["rests_on"]),
        floor=floor and Floor(floor["typical"], math.nan, 2 * floor["n_rows"], floor["left"]),
        notes=tuple(saved["notes"]),
        conformal=None if scores is None else Conformal(lambda: scores),
    )


def _correction(saved: dict[str, Any], asked: Asked, worlds: Worlds, booster: Any) -> Correction:
    encoding, ends, spread = from_spec(saved["encoding"]), saved["ends"], saved["spread"]
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


def _refuse_changed(saved: dict[str, Any]) -> None:
    """Refuse a description that no repair leaves: what reads it would fail later, or predict nonsense."""
    shares, levels, curve, floor = (saved[name] for name in ("shares", "levels", "curve", "floor"))
    ratio = saved["ratio"]["kind"]
    whole = {
        "protected": _are(str, saved["protected"]) and list(levels) == list(dict.fromkeys(levels)) != [],
        "inputs": _are(str, saved["inputs"])
        and len({*saved["inputs"]}) == len(saved["inputs"])
        and saved["outcome"] not in (*saved["inputs"], *saved["protected"]),
        "levels": all(len(values) == len(shares) and all(map(_is_level, values)) for values in levels.values()),
        "kinds": all(isinstance(kind, str | dict) for kind in saved["kinds"].values()),
        "distinct": not saved["listed"] or len({*zip(*levels.values(), strict=True)}) == len(shares),
        "shares": _are(float, shares) and min(shares) > 0 and abs(sum(shares) - 1) < _ROUNDING,
        "seed": type(saved["seed"]) is int and saved["seed"] >= 0,
        "strength": saved["strength"] is None or (_are(float, [saved["strength"]]) and saved["strength"] >= 0),
        "rests_on": saved["rests_on"] in (FORMULA, CORRECTION),
        "blind": type(saved["blind"]) is bool,
        "notes": saved["notes"] == [] or _are(str, saved["notes"]),
        "classes": saved["classes"] is None or _are_labels(saved["classes"]),
        "curve": set(curve) == set(_CURVE) and _rise(curve["strength"]) and all(map(_positive, curve.values())),
        "scores": saved["scores"] is None or saved["scores"] == [] or _rise(saved["scores"]),
        "floor": floor is None or (_are(float, list(floor.values())) and 2 * floor["n_rows"] < math.inf),
        "listed": type(saved["listed"]) is bool,
        "ratio": ratio in _LISTED if saved["listed"] else ratio in _UNLISTED,
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
        trained.save_model(model, folder / _OURS)
        return _OURS
    if isinstance(model, str | Path):
        (folder / _ONNX).write_bytes(Path(model).read_bytes())
        try:
            onnx_session(folder / _ONNX)
        except InputError as error:
            onnx_session(Path(model))  # says what is wrong with the file itself
            why = f"{model} keeps its weights in files beside it, and a folder of ours holds one file"
            raise InputError(f"{why}; export it with its weights inside.") from error
        return _ONNX
    if type(model).__module__ == "lightgbm.sklearn":
        (folder / _BOOSTED).write_text(model.booster_.model_to_string(), encoding="utf-8")
        return _BOOSTED
    return None


def _read_model(kept: str | None, place: Path, model: Any) -> Any:
    if model is not None:
        return model
    if kept == _OURS:
        return trained.load_model(place / _OURS)
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
    saved: dict[str, Any], place: Path, levels: Levels, scm: StructuralCausalModel, protected: tuple[str, ...]
) -> Ratio:
    if saved["kind"] == NoCauses.__name__:
        return NoCauses()
    if saved["kind"] == OfNumbers.__name__:
        grid = None if saved["grid"] is None else (np.array(saved["grid"][0]), np.array(saved["grid"][1]))
        return OfNumbers(scm, protected[0], pd.DataFrame(saved["causes"]), grid)
    read_listed(place, _RATIO, _LARGEST)
    model = EstimatedModel.load(place / _RATIO)
    return OfLevels(levels, model) if saved["kind"] == OfLevels.__name__ else OfPairs(model)


def _dtype(kind: Any) -> Any:
    if isinstance(kind, pd.CategoricalDtype):
        return {"categories": kind.categories.tolist(), "ordered": bool(kind.ordered)}
    return str(kind)


def _read_dtype(saved: Any) -> Any:
    if isinstance(saved, dict):
        return pd.CategoricalDtype(saved["categories"], saved["ordered"])
    return pd.api.types.pandas_dtype(saved)


def _number(value: Any) -> float | None:
    """JSON knows no infinity."""
    return None if math.isinf(value) else float(value)


def _read_number(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"A repaired model with {value!r} among its labels cannot be saved; use plain labels.")
