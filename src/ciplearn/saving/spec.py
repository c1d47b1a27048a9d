"""Kernels, penalties, encodings and networks as JSON-ready data, and back; and a network as an ONNX file.

Only known kinds are ever made. What was read back is checked: a changed file is refused, and never predicts.
"""

from __future__ import annotations

import copy
import io
import os
import warnings
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ciplearn import kernels, penalties
from ciplearn._core.encoding import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import InputError, InputTypeError, MissingDependencyError
from ciplearn._core.files import whole_file
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.networks import Constant, InvariantPath, LineNetwork, MeanNetwork, Perceptron, Ramps, Trees
from ciplearn.estimators.predictors import CIPRegressor

_PARTS = (kernels.Kernel, kernels.FeatureMap, penalties.Penalty)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (CategoryColumn, NumberColumn, TableEncoding)} | {
    name: kind
    for room in (kernels, penalties)
    for name, kind in vars(room).items()
    if name in room.__all__ and is_dataclass(kind) and isinstance(kind, type) and issubclass(kind, _PARTS)
}


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
        raise InputError(f"The model file names an unknown kind {spec.get('kind')!r}; it was changed or is too new.")
    try:
        # Products and sums take their parts one by one.
        value = kind(*arguments["parts"]) if "parts" in arguments else kind(**arguments)
        right = True
        if isinstance(value, NumberColumn):
            ends = value.low, value.high, value.median
            right = all(isinstance(end, int | float) and isfinite(end) for end in ends)
        elif isinstance(value, CategoryColumn):
            right = len(value.levels) > 0 and all(isinstance(level, str) for level in value.levels)
        if not right:
            raise TypeError(value.name)
    except TypeError as error:
        raise InputError(f"The model file describes {spec['kind']} in a way that does not fit; save anew.") from error
    return value


def check_restored(model: CIPEstimator, columns: Any) -> None:
    """Refuse a model that was read back with weights, parameters or columns that no training leaves."""
    if any(part.is_floating_point() and not part.isfinite().all() for part in model.module_.state_dict().values()):
        raise InputError("The weights of the model hold NaN or infinity, which predict nothing; train the model anew.")
    # As they are checked before a training.
    model._settings(seed=0)
    needed = {*model.encoding_.names, *model.roles_.used}
    if not isinstance(columns, list) or len({*columns}) != len(columns) or not needed <= {*columns}:
        raise InputError(f"The model file lists the columns {columns!r}, which are not those of its roles; save anew.")


def architecture(network: nn.Module) -> dict[str, Any]:
    """Return what a network is made of, without its weights."""
    if isinstance(network, LineNetwork | InvariantPath):
        parts = {"path": architecture(network.path), "rest": architecture(network.rest)}
        line = {"share": network.share, "labels": network.labels} if isinstance(network, LineNetwork) else {}
        return {"places": network.places.tolist(), **line, **parts}
    if isinstance(network, MeanNetwork):
        return {"mean": [architecture(one) for one in network.networks], "labels": network.labels}
    if isinstance(network, Constant):
        return {"constant": network.values.shape[1]}
    if isinstance(network, Perceptron):
        ramps = 0 if network.ramps is None else len(network.ramps)
        return {"perceptron": [network.n_inputs, list(network.hidden), network.n_outputs], "ramps": ramps}
    if isinstance(network, Trees):
        return {"trees": network.shape}
    return {"own": type(network).__name__}


def network_from(described: dict[str, Any], module: nn.Module | None) -> nn.Module:
    """Return the network that `architecture` has described; ``module`` is the user's own, where there is one."""
    if "places" in described:
        path, rest = (network_from(described[part], module) for part in ("path", "rest"))
        if "share" in described:
            return LineNetwork(path, rest, described["places"], described["share"], described["labels"])
        return InvariantPath(path, rest, described["places"])  # type: ignore[arg-type]
    if "mean" in described:
        return MeanNetwork([network_from(part, module) for part in described["mean"]], described["labels"])
    if "perceptron" in described:
        n_inputs, hidden, n_outputs = described["perceptron"]
        n = described.get("ramps", 0)
        return Perceptron(n_inputs, hidden, n_outputs, ramps=Ramps([0] * n, [0.0] * n, [1.0] * n))
    if "trees" in described:
        return Trees(*described["trees"])
    if "constant" in described:
        return Constant(torch.zeros(1, described["constant"]))
    if module is None:
        raise InputError(f"The model was trained with its own network {described.get('own')}; pass one as module=.")
    return module


def export_onnx(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write the network of a fitted model of a table.

    The file takes ``inputs``, the encoded table of shape (n, width) that ``model.encoding_.features(X)`` gives, and
    returns ``predictions``: values on the outcome's own scale, or class probabilities.

    Parameters
    ----------
    model : CIPRegressor, CIPClassifier, or what `Repaired.distil` has taught one of them
        Fitted without extra tensors. A repaired model asks its causal model about every row: distil it first.
    path : path
        Written whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from ciplearn import CIPRegressor, datasets, export_onnx
    >>> table = datasets.first_synthetic().sample(100, random_state=0)
    >>> model = CIPRegressor(protected=["A"], epochs=2).fit(table.drop(columns="Y"), table["Y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(export_onnx(model, f"{folder}/model.onnx").name)
    model.onnx
    """
    if hasattr(model, "distil"):
        why = f"A {type(model).__name__} model asks its causal model about every row, which an ONNX file cannot hold"
        call = 'export_onnx(repaired.distil(Network().estimator("regression")), path)'
        raise InputError(f"{why}; export what it teaches a network: {call}.")
    model = getattr(model, "model", model)
    if not isinstance(model, CIPEstimator):
        why = f"Only a fitted CIPRegressor or CIPClassifier can be exported, got {model!r}"
        raise InputTypeError(f"{why}; pass one, or what was distilled into one.")
    check_is_fitted(model, "module_")
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        raise MissingDependencyError("ONNX export needs the packages onnx and onnxscript; install ciplearn[onnx].")
    example = torch.zeros(2, model.encoding_.width)
    network = _AnsweringNetwork(model).eval()
    target = Path(path)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        # The exporter talks about its own future; none of it is for the person who exports.
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            (example,),
            input_names=["inputs"],
            output_names=["predictions"],
            dynamic_shapes={"inputs": {0: torch.export.Dim("rows")}},
            dynamo=True,
            verbose=False,
        )
    with whole_file(target) as file:
        file.write(program.model_proto.SerializeToString())  # type: ignore[union-attr]
    return target


class _AnsweringNetwork(nn.Module):
    """The network with what turns its output into an answer."""

    low: Tensor
    range: Tensor

    def __init__(self, model: CIPEstimator) -> None:
        super().__init__()
        self.network = copy.deepcopy(model.module_).cpu()
        self.prediction = model._objective().prediction
        self.classes = len(getattr(model, "classes_", ()))
        if isinstance(model, CIPRegressor):
            self.register_buffer("low", torch.tensor(model.target_low_, dtype=torch.float32))
            self.register_buffer("range", torch.tensor(model.target_range_, dtype=torch.float32))

    def forward(self, inputs: Tensor) -> Tensor:  # (n, width) -> (n, outputs)
        answer = self.prediction(self.network(inputs))
        if not self.classes:
            return self.low + answer * self.range
        return torch.cat([1 - answer, answer], dim=1) if self.classes == 2 else answer
