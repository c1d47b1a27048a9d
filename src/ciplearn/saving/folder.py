"""A fitted model as a folder: weights as safetensors, all else as JSON, and a card that says how it came about.

Loading reads numbers and text; nothing in the folder is ever run. Only known kinds of kernels, penalties, encodings and
networks are made, and what was read back is checked: a changed file is refused, and never predicts.
"""

from __future__ import annotations

import copy
import json
import os
import platform
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from math import isfinite
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from sklearn.base import MetaEstimatorMixin
from torch import nn

import ciplearn
from ciplearn import kernels, penalties
from ciplearn._core.arguments import flag, mapping_of, non_negative, positive, whole
from ciplearn._core.encoding import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError
from ciplearn._core.files import check_finished, checksum, listed_folder, read_listed
from ciplearn.causal import CausalGraph
from ciplearn.estimators import networks
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.predictors import CIPClassifier, CIPRegressor
from ciplearn.estimators.preparation import COUNTERFACTUAL, preparation_seed
from ciplearn.estimators.problem import Roles
from ciplearn.estimators.tables import statement_rows
from ciplearn.learners import LEARNERS
from ciplearn.learning.settings import chosen_device
from ciplearn.saving.card import card
from ciplearn.saving.causal_models import read_models, write_models

# Raised when an older ciplearn could no longer read what this one writes.
FORMAT = 2

_CLASSES: dict[str, type[CIPEstimator]] = {"CIPClassifier": CIPClassifier, "CIPRegressor": CIPRegressor}
_WEIGHTS, _DESCRIPTION, _README = "weights.safetensors", "model.json", "README.md"
_TARGET_SCALES = ("low", "range", "centre", "spread")
_NOT_SAVED = {"graph", "independence", "learner", "counterfactuals", "module", "penalty"}
_NOT_SAVED |= {"checkpoint", "random_state", "warm_start"}

_PARTS = (kernels.Kernel, kernels.FeatureMap, penalties.Penalty)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (CategoryColumn, NumberColumn, TableEncoding)} | {
    name: kind
    for room in (kernels, penalties)
    for name, kind in vars(room).items()
    if name in room.__all__ and is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, _PARTS)
}


def save_model(
    model: CIPEstimator,
    folder: str | os.PathLike[str],
    scores: dict[str, float] | None = None,
    overwrite: bool = True,
    *,
    counterfactuals: bool = True,
) -> Path:
    """Write a model that was trained here; see `ciplearn.save_model`."""
    kind = type(model).__name__
    if kind not in _CLASSES or not hasattr(model, "module_"):
        advice = "joblib.dump keeps other models"
        if kind in _CLASSES:
            advice = "fit it first"
        elif isinstance(model, MetaEstimatorMixin):
            advice = "pass its best_estimator_, once it is fitted"
        raise InputError(f"Only a fitted CIPRegressor or CIPClassifier can be saved, got a {kind}; {advice}.")
    flag(overwrite, "overwrite")
    flag(counterfactuals, "counterfactuals")
    target = as_path(folder)
    # With the parameters of its training, whatever was set since; how much it says is no matter.
    trained = {name: value for name, value in getattr(model, "trained_with_", {}).items() if name != "verbose"}
    model = copy.copy(model).set_params(**trained)
    weights = save_tensors({name: part.contiguous().cpu() for name, part in model.module_.state_dict().items()})
    described = _described(model, weights, mapping_of(scores, "scores"))
    with listed_folder(target, overwrite=overwrite) as fresh:
        worlds = model.route_ == COUNTERFACTUAL
        described["counterfactuals"] = write_models(model, fresh, files=counterfactuals) if worlds else []
        description = json.dumps(described, indent=2, ensure_ascii=False, default=_plain)
        (fresh / _WEIGHTS).write_bytes(weights)
        (fresh / _DESCRIPTION).write_text(description, encoding="utf-8")
        (fresh / _README).write_text(card(json.loads(description)), encoding="utf-8")
    return target


def load_model(
    folder: str | os.PathLike[str],
    module: nn.Module | Callable[[], nn.Module] | None = None,
    device: str = "cpu",
    *,
    counterfactuals: Callable[[Path], Any] | None = None,
) -> CIPEstimator:
    """Read a model that was trained here; see `ciplearn.load_model`."""
    computed_on = chosen_device(device)
    description, weights = _read(as_path(folder))
    users_network = None if module is None else networks.network_of(module)
    try:
        model = _restored(description)
        network = network_from(description["network"], users_network)
        try:
            network.load_state_dict(load_tensors(weights))
        except (RuntimeError, SafetensorError) as error:
            why = f"The weights in {folder} do not fit the network"
            raise InputError(f"{why}; pass a module of the same architecture.") from error
        model.module_ = network.to(computed_on).eval()
        if isinstance(model.module_, networks.LineNetwork):
            model.share_ = model.module_.share
        check_restored(model, description["columns"])
        # One row of nothing is asked for: an entry of a wrong kind shows here and not in use.
        features = torch.from_numpy(model.encoding_.features(pd.DataFrame(index=[0], columns=[*model.encoding_.names])))
        for statement, pair in zip(model.roles_.statements, model.statement_encodings_, strict=True):
            statement_rows(pair, pd.DataFrame(index=[0], columns=[*statement.right, *statement.given]))
        if isinstance(model.module_, networks.OURS) and model.module is None:
            answer = model.module_(features.to(networks.device_of(model.module_)))
            if not isinstance(model, CIPClassifier):
                answer.detach().cpu().numpy() * model.target_range_ + model.target_low_
        if counterfactuals is not None and model.route_ == COUNTERFACTUAL:
            model.counterfactuals = read_models(as_path(folder), description["counterfactuals"], counterfactuals)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError, OverflowError) as error:
        if isinstance(error, CiplearnError):
            raise
        why = f"{Path(folder) / _DESCRIPTION} fits no model of this version"
        raise InputError(f"{why}: it was changed, or an earlier version wrote it; save the model anew.") from error
    return model


def _restored(description: dict[str, Any]) -> CIPEstimator:
    parameters = dict(description["parameters"])
    parameters["hidden"] = tuple(parameters["hidden"])
    model = _CLASSES[description["class"]](**parameters)
    model.penalty = from_spec(description["penalty"])
    learner = description.get("learner")
    model.learner = None if learner is None else LEARNERS[learner["name"]](**learner["settings"])
    model.graph = None if description["graph"] is None else CausalGraph.from_json(json.dumps(description["graph"]))
    model.roles_ = Roles.from_dict(description["roles"], model.graph)
    if model.roles_.verdict is not None and not model.roles_.verdict.protected:
        raise ValueError("protected")
    model.route_ = description["route"]
    if not isinstance(model.route_, str):
        raise ValueError("route")
    # An earlier version did not write it.
    is_absent = "preparation_seed" not in description
    seed = preparation_seed(model.random_state) if is_absent else description["preparation_seed"]
    model.preparation_seed_ = whole(seed, "preparation_seed", minimum=0)
    if model.graph is None and model.protected is None and model.roles_.statements:
        statements = model.roles_.statements
        model.independence = statements[0] if len(statements) == 1 else list(statements)
    model.encoding_ = from_spec(description["encoding"])
    model.statement_encodings_ = from_spec(description["statement_encodings"])
    target = description["target"]
    if isinstance(model, CIPClassifier):
        model.classes_ = np.array(target["classes"], dtype=object if target["kind"] == "object" else None)
    else:
        scales = np.stack([np.array(target[name]) for name in _TARGET_SCALES])
        if scales.dtype.kind not in "if" or not np.isfinite(scales).all():
            raise ValueError("target")
        model.target_low_, model.target_range_, model.target_centre_, model.target_spread_ = scales
        model.target_is_flat_ = flag(target["flat"], "flat")
    model.gamma_ = non_negative(description["gamma"], "gamma")
    model.gamma_scale_ = positive(description["gamma_scale"], "gamma_scale")
    model.n_iter_ = whole(description["epochs"], "epochs", minimum=0)
    model.history_ = tuple(dict(epoch) for epoch in description["history"])
    model.n_features_in_ = len(description["columns"])
    if not isinstance(description["array"], bool):
        raise ValueError("array")
    if description["array"]:
        model.array_names_ = description["columns"]
    else:
        model.feature_names_in_ = np.asarray(description["columns"], dtype=object)
    model.trained_with_ = model.get_params(deep=False)
    return model


def _described(model: CIPEstimator, weights: bytes, scores: dict[str, float]) -> dict[str, Any]:
    if model.learner is not None and LEARNERS.get(model.learner.name) is not type(model.learner):
        raise InputError(f"{model.learner!r} cannot be saved, since it is not registered; add it to learners.LEARNERS.")
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_SAVED}
    if isinstance(model.random_state, Integral):
        # A generator has moved on since; a seed says how to train again.
        parameters["random_state"] = model.random_state
    if isinstance(model, CIPClassifier):
        target = {"classes": model.classes_.tolist(), "kind": str(model.classes_.dtype)}
    else:
        target = {name: getattr(model, f"target_{name}_").tolist() for name in _TARGET_SCALES}
        target["flat"] = model.target_is_flat_
    return {
        "format": FORMAT,
        "class": type(model).__name__,
        "versions": {
            "ciplearn": ciplearn.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parameters": {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()},
        "penalty": to_spec(model.penalty),
        "learner": model.learner and {"name": model.learner.name, "settings": model.learner.settings},
        "graph": None if model.graph is None else json.loads(model.graph.to_json()),
        "roles": model.roles_.to_dict(),
        "route": model.route_,
        "preparation_seed": model.preparation_seed_,
        "encoding": to_spec(model.encoding_),
        "statement_encodings": to_spec(model.statement_encodings_),
        "columns": [str(name) for name in getattr(model, "array_names_", getattr(model, "feature_names_in_", ()))],
        "array": hasattr(model, "array_names_"),
        "target": target,
        "gamma": model.gamma_,
        "gamma_scale": model.gamma_scale_,
        "epochs": model.n_iter_,
        "history": list(model.history_),
        "network": architecture(model.module_),
        "scores": scores,
        "weights_sha256": checksum(weights),
    }


def _read(folder: Path) -> tuple[dict[str, Any], bytes]:
    check_finished(folder)
    # Unlike a Path's, this one takes every name, also one that no file can have.
    if not os.path.exists(folder / _DESCRIPTION):
        raise InputError(f"{folder} is no saved model; pass the folder that save_model has written.")
    text = read_listed(folder, _DESCRIPTION)
    weights = read_listed(folder, _WEIGHTS, largest=1 << 16)
    try:
        description = json.loads(text)
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder / _DESCRIPTION} is damaged or no model description; save the model anew.") from error
    if type(version) is not int or version < 1:
        why = f"{folder / _DESCRIPTION} has format {version!r:.40}, which no ciplearn writes"
        raise InputError(f"{why}; save the model anew.")
    if version > FORMAT:
        raise InputError(f"{folder} has format {version!r:.40}, this ciplearn reads up to {FORMAT}; update ciplearn.")
    if checksum(weights) != description.get("weights_sha256"):
        raise InputError(f"{folder / _WEIGHTS} is truncated or was changed since it was saved; save the model anew.")
    if str(description.get("class")) not in _CLASSES:
        raise InputError(
            f"{folder} names an unknown model {description.get('class')!r:.60}; it was changed or is too new."
        )
    return description, weights


def as_path(folder: Any) -> Path:
    """Return a folder as a path."""
    if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
        raise InputTypeError(f"folder must be a path, got {folder!r}; pass for example 'model'.")
    return Path(folder)


def _plain(value: Any) -> Any:
    """JSON for what people pass as parameters beside plain numbers, text and lists."""
    if isinstance(value, np.generic | np.ndarray | pd.Index):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, torch.device):
        return str(value)
    raise InputTypeError(f"A model with {value!r} among its parameters or classes cannot be saved; use plain values.")


def _kind_named(name: str) -> type | None:
    """A kind that may be made: one of the library's, or a penalty that was registered since."""
    registered = (kind for kind in penalties.PENALTIES.values() if isinstance(kind, type))
    return _KINDS.get(name) or next((kind for kind in registered if kind.__name__ == name), None)


def to_spec(value: Any) -> Any:
    """Return a value as JSON-ready data."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        if _kind_named(kind) is not type(value):
            raise InputError(f"{value!r} cannot be saved, ciplearn does not know {kind}; save the weights yourself.")
        return {"kind": kind, **{field.name: to_spec(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, tuple | list):
        return [to_spec(entry) for entry in value]
    return value


def from_spec(spec: Any) -> Any:
    """Return the value that `to_spec` has described."""
    if isinstance(spec, list):
        return tuple(from_spec(entry) for entry in spec)
    if not isinstance(spec, dict):
        return spec
    arguments = {name: from_spec(entry) for name, entry in spec.items() if name != "kind"}
    kind = _kind_named(str(spec.get("kind")))
    if kind is None:
        raise InputError(
            f"The model file names an unknown kind {spec.get('kind')!r:.60}; it was changed or is too new."
        )
    try:
        # Products and sums take their parts one by one.
        value = kind(*arguments["parts"]) if "parts" in arguments else kind(**arguments)
        is_sound = True
        if isinstance(value, NumberColumn):
            ends = value.low, value.high, value.median
            is_sound = all(isinstance(end, int | float) and isfinite(end) for end in ends)
        elif isinstance(value, CategoryColumn):
            is_sound = len(value.levels) > 0 and all(isinstance(level, str) for level in value.levels)
        if isinstance(value, TableEncoding):
            is_sound = all(isinstance(one, NumberColumn | CategoryColumn) for one in value.columns)
        elif hasattr(value, "name"):
            is_sound = is_sound and isinstance(value.name, str)
        if not is_sound:
            raise TypeError(kind.__name__)
    except TypeError as error:
        raise InputError(f"The model file describes {spec['kind']} in a way that does not fit; save anew.") from error
    return value


def check_restored(model: CIPEstimator, columns: Any) -> None:
    """Refuse a model that was read back with weights, parameters or columns that no training leaves."""
    if any(part.is_floating_point() and not part.isfinite().all() for part in model.module_.state_dict().values()):
        raise InputError("The weights of the model hold NaN or infinity, which predict nothing; train the model anew.")
    # As they are checked before a training.
    model._settings(seed=0)
    is_whole = isinstance(columns, list) and len({*columns}) == len(columns) and {*model.roles_.used} <= {*columns}
    if not is_whole or {*model.encoding_.names} != {*model.roles_.inputs}:
        raise InputError(
            f"The model file lists the columns {columns!r:.200}, which are not those of its roles; save anew."
        )


def architecture(network: nn.Module) -> dict[str, Any]:
    """Return what a network is made of, without its weights."""
    if isinstance(network, networks.LineNetwork | networks.InvariantPath):
        parts = {"path": architecture(network.path), "rest": architecture(network.rest)}
        line = {"share": network.share, "labels": network.labels} if isinstance(network, networks.LineNetwork) else {}
        return {"places": network.places.tolist(), **line, **parts}
    if isinstance(network, networks.MeanNetwork):
        return {"mean": [architecture(part) for part in network.networks], "labels": network.labels}
    if isinstance(network, networks.Constant):
        return {"constant": network.values.shape[1]}
    if isinstance(network, networks.Perceptron):
        ramps = 0 if network.ramps is None else len(network.ramps)
        return {"perceptron": [network.n_inputs, list(network.hidden), network.n_outputs], "ramps": ramps}
    if isinstance(network, networks.Trees):
        return {"trees": network.shape}
    return {"own": type(network).__name__}


def network_from(described: dict[str, Any], module: nn.Module | None) -> nn.Module:
    """Return the network that `architecture` has described; ``module`` is the user's own, where there is one."""
    if "places" in described:
        path, rest = (network_from(described[part], module) for part in ("path", "rest"))
        if "share" in described:
            share, labels = described["share"], flag(described["labels"], "labels")
            return networks.LineNetwork(path, rest, described["places"], share, labels)
        return networks.InvariantPath(path, rest, described["places"])  # type: ignore[arg-type]
    if "mean" in described:
        parts = [network_from(part, module) for part in described["mean"]]
        return networks.MeanNetwork(parts, flag(described["labels"], "labels"))
    if "perceptron" in described:
        n_inputs, hidden, n_outputs = described["perceptron"]
        n_inputs, n_outputs = (whole(width, "A width", minimum=1) for width in (n_inputs, n_outputs))
        n = described.get("ramps", 0)
        return networks.Perceptron(n_inputs, hidden, n_outputs, ramps=networks.Ramps([0] * n, [0.0] * n, [1.0] * n))
    if "trees" in described:
        return networks.Trees(*described["trees"])
    if "constant" in described:
        return networks.Constant(torch.zeros(1, described["constant"]))
    if module is None:
        raise InputError(f"The model was trained with its own network {described.get('own')}; pass one as module=.")
    return module
