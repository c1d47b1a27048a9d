"""A structural causal model whose mechanisms were estimated: by `fit_scm`, by ``dowhy.gcm``, or read from a file.

The file holds numbers as safetensors and everything else as JSON in its header, no pickle: the dataclasses that
mechanisms are made of, field by field, each registered under its name by the line ``@kept`` above it. A mechanism with
foreign parts, such as a scikit-learn regressor, is refused.
"""

from __future__ import annotations

import copy
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as save_arrays
from torch import nn

from ciplearn._core.arguments import whole
from ciplearn._core.errors import CiplearnError, InputError, InputTypeError, MissingDependencyError
from ciplearn._core.files import whole_file
from ciplearn.causal import CausalGraph
from ciplearn.scm.estimate import MechanismChoice, Memory
from ciplearn.scm.kinds import KEPT, Array, Kind, Scalar
from ciplearn.scm.mechanism import JointNoise, Mechanism, Parents
from ciplearn.scm.model import StructuralCausalModel
from ciplearn.scm.report import FitReport

_FORMAT = "1"
_HEADER = "ciplearn.scm"
_LARGEST = 1e150  # the square of a larger number is no number any more


class EstimatedModel(StructuralCausalModel):
    """A structural causal model whose mechanisms were estimated; all it says is model-based.

    Attributes
    ----------
    report : FitReport
        How well each mechanism fits; print it.
    misfits, ambiguities : tuple of Finding
        Nodes whose mechanism does not fit, and nodes of which data leave open what would have been: the noise is clear
        up to its sign only, or mechanisms that fit about equally imagine different values. Each has a sentence.
    trustworthy : bool
        Whether there are neither: the data do not speak against the mechanisms. The graph may still be wrong.
    choices, memory : mapping
        The mechanisms that were tried for each node, with their losses; what ``fit_scm(..., like=this)`` reads.

    Examples
    --------
    >>> from ciplearn import datasets, fit_scm
    >>> world = datasets.applicants()
    >>> scm = fit_scm(world.graph, world.sample(400, random_state=0))
    >>> scm.misfits, scm.ambiguities
    ((), ())
    """

    model_based = True
    report: FitReport

    def __init__(
        self,
        graph: CausalGraph,
        mechanisms: Mapping[str, Mechanism],
        kinds: Mapping[str, Kind],
        report: FitReport,
        choices: Mapping[str, MechanismChoice] | None = None,
        joint_noise: tuple[JointNoise, ...] = (),
        memory: Memory | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, mechanisms, kinds=kinds)
        self.report = report
        self.misfits, self.ambiguities = report.misfits, report.ambiguities
        self.choices = dict(choices or {})
        self.joint_noise = joint_noise
        self.memory: Memory = {} if memory is None else memory
        self.seed = seed

    def variants(self, node: str) -> dict[str, Self]:
        """Return this model with each other mechanism of a node that predicts held-out rows about as well, by its name.

        The range of an answer over them is how far it hangs on the choice of the mechanism.
        """
        self.graph.known([node])
        equals = self.choices[node].equals if node in self.choices else ()
        return {other.label: self.replaced({node: other.mechanism}) for other in equals}

    def ties(self, nodes: Iterable[str]) -> tuple[Self, ...]:
        """Return this model with the mechanism, of one of some nodes each, that fits as well and imagines other values.

        What holds under this model and under all of them does not hang on what the data leave open about these nodes. A
        model that was read from a file does not keep such mechanisms, which is an error.
        """
        tied = {fit.node: fit.tie for fit in self.report.nodes if fit.tie is not None}
        models = []
        for node in [node for node in nodes if node in tied]:
            variants = self.variants(node)
            if tied[node] not in variants:
                why = f"The mechanism of {node} that fits as well, '{tied[node]}', was not kept"
                raise InputError(f"{why}; fit the model anew with fit_scm.")
            models.append(variants[tied[node]])
        return tuple(models)

    def replaced(self, mechanisms: Mapping[str, Mechanism]) -> Self:
        """Return this model with other mechanisms for some nodes."""
        for node in self.graph.known(mechanisms, "mechanisms"):
            if not isinstance(mechanisms[node], Mechanism):
                raise InputError(f"The mechanism of {node} must be a Mechanism, got {mechanisms[node]!r}.")
        other = copy.copy(self)
        other.mechanisms = {**self.mechanisms, **mechanisms}
        return other

    def save(self, path: str | Path) -> None:
        """Write the model to one file, as data without pickle; parts such as a scikit-learn regressor are refused.

        The mechanisms that were tried are left out: the report keeps their scores, but `variants` and `ties` need a
        fit, and with ``like=`` every node is fitted again.
        """
        graph = self.graph
        parts = {"nodes": graph.nodes, "latent": tuple(sorted(graph.latent)), "edges": graph.directed}
        fitted = {name: getattr(self, name) for name in ("mechanisms", "kinds", "report", "joint_noise", "seed")}
        write_parts(parts | fitted, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `save` wrote; it imagines what the saved one did, to the last bit."""
        parts = read_parts(Path(path))
        with _sound(path), warnings.catch_warnings(action="ignore"):
            graph = CausalGraph.from_edges(parts["edges"], nodes=parts["nodes"], latent=parts["latent"])
            model = cls(graph, parts["mechanisms"], parts["kinds"], parts["report"], joint_noise=parts["joint_noise"])
            model.seed = whole(parts.get("seed", 0), "seed", minimum=0)  # an earlier version did not write it
            # Rows are drawn and traced back: an entry of a wrong kind shows here and not in use.
            rows = model.sample(7, random_state=0)
            with suppress(CiplearnError):  # of some models noise cannot be told
                model.abduct(rows, random_state=0)
        return model


def write_parts(parts: Mapping[str, Any], path: Path) -> None:
    """Write named parts of a model to one file, whole or not at all."""
    arrays: dict[str, Array] = {}
    content = {name: _as_json(part, arrays, name) for name, part in parts.items()}
    header = {_HEADER: json.dumps(content, allow_nan=False), "format": _FORMAT}
    with whole_file(path) as stream:
        stream.write(save_arrays(arrays, metadata=header))


def read_parts(path: Path) -> dict[str, Any]:
    """Read what `write_parts` wrote."""
    try:
        with safe_open(str(path), framework="numpy") as stream:
            header = stream.metadata() or {}
            arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as a saved model: {error}; write it anew with save.") from error
    numbers = [array[np.isfinite(array)] for array in arrays.values() if array.dtype == np.float64]
    if any(np.abs(array).max(initial=0) > _LARGEST for array in numbers):
        raise InputError(f"{path} is damaged: it holds numbers beyond {_LARGEST:g}; write it anew with save.")
    if header.get("format") != _FORMAT or _HEADER not in header:
        raise InputError(f"{path} holds no causal model that this version reads; write it anew with save.")
    with _sound(path):
        return {name: _read(part, arrays) for name, part in json.loads(header[_HEADER]).items()}


@contextmanager
def _sound(path: str | Path) -> Iterator[None]:
    """Say in one sentence that a file is damaged, whatever its entries make fail."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, MissingDependencyError):
            raise
        why = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
        raise InputError(f"{path} is damaged: {why}; write it anew with save.") from error


def _as_json(value: Any, arrays: dict[str, Array], node: str) -> Any:
    """Return a value as JSON, its arrays by their place among ``arrays``."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return value if isinstance(value, int) or math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype == object:
        levels = list(dict.fromkeys(value.tolist()))
        code_of = {level: code for code, level in enumerate(levels)}
        codes = np.array([code_of[label] for label in value], dtype=np.int64)
        return {"labels": [_as_json(level, arrays, node) for level in levels], "codes": _as_json(codes, arrays, node)}
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, tuple | list):
        return {"tuple": [_as_json(part, arrays, node) for part in value]}
    if isinstance(value, Mapping):
        # A mapping is by node, so what cannot be written is named by its key.
        return {"mapping": [[key, _as_json(part, arrays, str(key))] for key, part in value.items()]}
    if isinstance(value, nn.Module):
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in value.state_dict().items()}
        return {"network": {name: _as_json(array, arrays, node) for name, array in weights.items()}}
    if KEPT.get(type(value).__name__) is type(value) and is_dataclass(value):
        return {
            "class": type(value).__name__,
            "fields": {field.name: _as_json(getattr(value, field.name), arrays, node) for field in fields(value)},
        }
    why = f"The mechanism of {node} holds a {type(value).__name__}, which cannot be kept as data"
    raise InputError(f"{why}; leave its mechanism to fit_scm, or keep the table and fit again.")


def _read(value: Any, arrays: Mapping[str, Array]) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "array" in value:
        return arrays[value["array"]]
    if "labels" in value:
        labels = np.empty(len(value["labels"]), dtype=object)
        labels[:] = value["labels"]
        return labels[_read(value["codes"], arrays)]
    if "tuple" in value:
        return tuple(_read(part, arrays) for part in value["tuple"])
    if "mapping" in value:
        return {key: _read(part, arrays) for key, part in value["mapping"]}
    if "network" in value:
        return {name: _read(array, arrays) for name, array in value["network"].items()}
    parts = {name: _read(part, arrays) for name, part in value["fields"].items()}
    part = KEPT[value["class"]]
    return part.restored(parts) if hasattr(part, "restored") else part(**parts)


def from_dowhy(model: Any, n_rows: int = 0) -> EstimatedModel:
    """Return a fitted ``dowhy.gcm.InvertibleStructuralCausalModel`` as a model of this library.

    ``model``: after ``dowhy.gcm.fit``; every node is one number. ``n_rows``: how many rows it was fitted to, for the
    report.

    >>> from ciplearn.scm import from_dowhy
    >>> from_dowhy("not a model of dowhy.gcm")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    InputTypeError: model must be a fitted dowhy.gcm InvertibleStructuralCausalModel, got str; fit one
    """
    # dowhy itself is never imported: its interface is read. Parents of a mechanism stand in sorted order.
    if not hasattr(model, "causal_mechanism") or not hasattr(model, "graph"):
        why = f"model must be a fitted dowhy.gcm InvertibleStructuralCausalModel, got {type(model).__name__}"
        raise InputTypeError(f"{why}; fit one with dowhy.gcm.fit(model, data).")
    # dowhy keeps mechanisms as attributes of nodes, which a causal graph has no use for.
    bare = type(model.graph)()
    bare.add_nodes_from(model.graph.nodes)
    bare.add_edges_from(model.graph.edges)
    graph = CausalGraph.from_networkx(bare)
    mechanisms: dict[str, Mechanism] = {}
    for node in graph.nodes:
        parents = tuple(sorted(graph.parents(node)))
        inner = model.causal_mechanism(node)
        needed = ("evaluate", "estimate_noise", "draw_noise_samples") if parents else ("draw_samples",)
        if lacking := [name for name in needed if not hasattr(inner, name)]:
            raise InputTypeError(
                f"The mechanism of {node} cannot be inverted: {type(inner).__name__} has no {lacking[0]}; assign an "
                "invertible mechanism such as an additive noise model, or estimate this model with fit_scm."
            )
        mechanisms[node] = _DowhyMechanism(inner, parents)
    notes = ("The mechanisms were fitted by dowhy.gcm; ask its evaluate_causal_model how well.",)
    return EstimatedModel(graph, mechanisms, {node: Scalar() for node in graph.nodes}, FitReport((), n_rows, notes))


@dataclass(frozen=True)
class _DowhyMechanism(Mechanism):
    """One node's mechanism; arrays are columns on dowhy's side."""

    inner: Any
    parents: tuple[str, ...]

    def draw(self, n: int, generator: Generator) -> Array:
        sampler = self.inner.draw_noise_samples if self.parents else self.inner.draw_samples
        # dowhy draws from numpy's global state: lend it a seeded one and put the old one back.
        state = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(int(generator.integers(2**32)))  # noqa: NPY002
            return _column(sampler(n))
        finally:
            np.random.set_state(state)  # noqa: NPY002

    def evaluate(self, parents: Parents, noise: Array) -> Array:
        if not self.parents or len(noise) == 0:
            return noise
        return _column(self.inner.evaluate(self._matrix(parents), noise[:, None]))

    def recover(self, parents: Parents, value: Array) -> Array:
        if not self.parents or len(value) == 0:
            return value
        return _column(self.inner.estimate_noise(value[:, None], self._matrix(parents)))

    def _matrix(self, parents: Parents) -> Array:
        return np.stack([parents[name] for name in self.parents], axis=1)


def _column(array: Any) -> Array:
    return np.asarray(array, dtype=np.float64).reshape(len(array))
