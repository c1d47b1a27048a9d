"""The network of a fitted model as an ONNX file."""

from __future__ import annotations

import copy
import io
import os
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ciplearn._core.errors import InputError, InputTypeError, MissingDependencyError
from ciplearn._core.files import whole_file
from ciplearn.estimators.base import CIPEstimator
from ciplearn.estimators.predictors import CIPRegressor


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
