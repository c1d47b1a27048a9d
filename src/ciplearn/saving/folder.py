"""A fitted model as a folder: weights as safetensors, all else as JSON, and a card for people.

Loading reads numbers and text; nothing in the folder is ever run.
"""

from __future__ import annotations

import copy
import json
import os
import platform
from collections.abc import Callable
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
from ciplearn._core.choices import mapping_of
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError
from ciplearn._core.files import checksum
from ciplearn._core.flags import flag
from ciplearn._core.listed_folders import check_finished, listed_folder, read_listed
from ciplearn._core.numbers import non_negative, positive, whole
from ciplearn.causal import CausalGraph
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.classifier import CIPClassifier
from ciplearn.estimators.networks import (
    OURS,
    Constant,
    InvariantPath,
    LineNetwork,
    MeanNetwork,
    Perceptron,
    Ramps,
    Trees,
    device_of,
    network_of,
)
from ciplearn.estimators.preparation import preparation_seed
from ciplearn.estimators.regressor import CIPRegressor
from ciplearn.estimators.roles import Roles
from ciplearn.learners import LEARNERS
from ciplearn.learning.settings import chosen_device
from ciplearn.saving.card import card
from ciplearn.saving.kept_models import read_models, write_models
from ciplearn.saving.spec import check_restored, from_spec, to_spec

# Raised when an older ciplearn could no longer read what this one writes.
FORMAT = 2

_CLASSES: dict[str, type[CIPEstimator]] = {"CIPClassifier": CIPClassifier, "CIPRegressor": CIPRegressor}
_WEIGHTS, _DESCRIPTION, _README = "weights.safetensors", "model.json", "README.md"
_NOT_SAVED = {
    "graph",
    "independence",
    "learner",
    "counterfactuals",
    "module",
    "penalty",
    "checkpoint",
    "random_state",
    "warm_start",
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
    model = _as_trained(model)
    weights = save_tensors({name: part.contiguous().cpu() for name, part in model.module_.state_dict().items()})
    described = _described(model, weights, mapping_of(scores, "scores"))
    with listed_folder(target, overwrite=overwrite) as fresh:
        described["counterfactuals"] = write_models(model, fresh, files=counterfactuals)
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
    place = chosen_device(device)
    description, weights = _read(as_path(folder))
    own = None if module is None else network_of(module)
    try:
        model = _restored(description)
        model.module_ = _network(description["network"], own, weights, Path(folder)).to(place).eval()
        if isinstance(model.module_, LineNetwork):
            model.share_ = model.module_.share
        check_restored(model, description["columns"])
        _dry_run(model)
        if counterfactuals is not None:
            model.counterfactuals = read_models(as_path(folder), description["counterfactuals"], counterfactuals)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError) as error:
        if isinstance(error, CiplearnError):
            raise
        raise InputError(
            f"{Path(folder) / _DESCRIPTION} fits no model of this version: it was changed, or an earlier version wrote "
            "it; save the model anew."
        ) from error
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
    model.route_ = description["route"]
    # An earlier version did not write it.
    seed = description.get("preparation_seed", preparation_seed(model.random_state))
    model.preparation_seed_ = whole(seed, "preparation_seed", minimum=0)
    if model.graph is None and model.protected is None and model.roles_.statements:
        statements = model.roles_.statements
        model.independence = statements[0] if len(statements) == 1 else list(statements)
    model.encoding_ = from_spec(description["encoding"])
    model.statement_encodings_ = from_spec(description["statement_encodings"])
    _restore_target(model, description["target"])
    model.gamma_ = non_negative(description["gamma"], "gamma")
    model.gamma_scale_ = positive(description["gamma_scale"], "gamma_scale")
    model.n_iter_ = whole(description["epochs"], "epochs", minimum=0)
    model.history_ = tuple(description["history"])
    model.n_features_in_ = len(description["columns"])
    if not isinstance(description["array"], bool):
        raise ValueError("array")
    if description["array"]:
        model.array_names_ = description["columns"]
    else:
        model.feature_names_in_ = np.asarray(description["columns"], dtype=object)
    model.trained_with_ = model.get_params(deep=False)
    return model


def _as_trained(model: CIPEstimator) -> CIPEstimator:
    """Return the model with the parameters of its training, whatever was set since; how much it says is no matter."""
    trained = getattr(model, "trained_with_", {})
    return copy.copy(model).set_params(**{name: value for name, value in trained.items() if name != "verbose"})


def _described(model: CIPEstimator, weights: bytes, scores: dict[str, float]) -> dict[str, Any]:
    network: nn.Module = model.module_
    if model.learner is not None and LEARNERS.get(model.learner.name) is not type(model.learner):
        raise InputError(f"{model.learner!r} cannot be saved, since it is not registered; add it to learners.LEARNERS.")
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_SAVED}
    if isinstance(model.random_state, Integral):
        # A generator has moved on since; a seed says how to train again.
        parameters["random_state"] = model.random_state
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
        "target": _target(model),
        "gamma": model.gamma_,
        "gamma_scale": model.gamma_scale_,
        "epochs": model.n_iter_,
        "history": list(model.history_),
        "network": _architecture(network),
        "scores": scores,
        "weights_sha256": checksum(weights),
    }


def _architecture(network: nn.Module) -> dict[str, Any]:
    if isinstance(network, LineNetwork):
        parts = {"path": _architecture(network.path), "rest": _architecture(network.rest)}
        return {"places": network.places.tolist(), "share": network.share, "labels": network.labels, **parts}
    if isinstance(network, MeanNetwork):
        return {"mean": [_architecture(one) for one in network.networks], "labels": network.labels}
    if isinstance(network, Constant):
        return {"constant": network.values.shape[1]}
    if isinstance(network, InvariantPath):
        parts = {"path": _architecture(network.path), "rest": _architecture(network.rest)}
        return {"places": network.places.tolist(), **parts}
    if isinstance(network, Perceptron):
        ramps = 0 if network.ramps is None else len(network.ramps)
        return {"perceptron": [network.n_inputs, list(network.hidden), network.n_outputs], "ramps": ramps}
    if isinstance(network, Trees):
        return {"trees": network.shape}
    return {"own": type(network).__name__}


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
        raise InputError(
            f"{folder / _DESCRIPTION} has format {version!r}, which no ciplearn writes; save the model anew."
        )
    if version > FORMAT:
        raise InputError(
            f"{folder} has format {version}, this ciplearn reads up to {FORMAT}; update ciplearn to read it."
        )
    if checksum(weights) != description.get("weights_sha256"):
        raise InputError(f"{folder / _WEIGHTS} is truncated or was changed since it was saved; save the model anew.")
    if str(description.get("class")) not in _CLASSES:
        raise InputError(f"{folder} names an unknown model {description.get('class')!r}; it was changed or is too new.")
    return description, weights


def _target(model: CIPEstimator) -> dict[str, Any]:
    if isinstance(model, CIPClassifier):
        return {"classes": model.classes_.tolist(), "kind": str(model.classes_.dtype)}
    return {
        "low": model.target_low_.tolist(),
        "range": model.target_range_.tolist(),
        "centre": model.target_centre_.tolist(),
        "spread": model.target_spread_.tolist(),
        "flat": model.target_is_flat_,
    }


def _restore_target(model: CIPEstimator, target: dict[str, Any]) -> None:
    if isinstance(model, CIPClassifier):
        kind = object if target["kind"] == "object" else None
        model.classes_ = np.array(target["classes"], dtype=kind)
    else:
        parts = [np.array(target[name], dtype=float) for name in ("low", "range", "centre", "spread")]
        if not np.isfinite(np.stack(parts)).all():
            raise ValueError("target")
        model.target_low_, model.target_range_, model.target_centre_, model.target_spread_ = parts
        model.target_is_flat_ = target["flat"]


def _network(said: dict[str, Any], module: nn.Module | None, weights: bytes, folder: Path) -> nn.Module:
    network = _built(said, module, folder)
    try:
        network.load_state_dict(load_tensors(weights))
    except (RuntimeError, SafetensorError) as error:
        raise InputError(
            f"The weights in {folder} do not fit the network; pass a module of the same architecture."
        ) from error
    return network


def _built(said: dict[str, Any], module: nn.Module | None, folder: Path) -> nn.Module:
    if "places" in said:
        path, rest = (_built(said[part], module, folder) for part in ("path", "rest"))
        if "share" in said:
            return LineNetwork(path, rest, said["places"], said["share"], said["labels"])
        return InvariantPath(path, rest, said["places"])  # type: ignore[arg-type]
    if "mean" in said:
        return MeanNetwork([_built(part, module, folder) for part in said["mean"]], said["labels"])
    if "perceptron" in said:
        n_inputs, hidden, n_outputs = said["perceptron"]
        n = said.get("ramps", 0)
        return Perceptron(n_inputs, hidden, n_outputs, ramps=Ramps([0] * n, [0.0] * n, [1.0] * n))
    if "trees" in said:
        return Trees(*said["trees"])
    if "constant" in said:
        return Constant(torch.zeros(1, said["constant"]))
    if module is None:
        raise InputError(f"{folder} was trained with its own network {said.get('own')}; pass one as module=.")
    return module


def _dry_run(model: CIPEstimator) -> None:
    """Ask for one row of nothing: an entry of a wrong kind shows here and not in use."""
    empty = pd.DataFrame(None, index=[0], columns=list(model.encoding_.names))
    features = torch.from_numpy(model.encoding_.features(empty))
    if isinstance(model.module_, OURS) and model.module is None:
        answer = model.module_(features.to(device_of(model.module_)))
        if not isinstance(model, CIPClassifier):
            answer.detach().cpu().numpy() * model.target_range_ + model.target_low_


def as_path(folder: Any) -> Path:
    """Return a folder as a path."""
    if not isinstance(folder, str | os.PathLike):
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
