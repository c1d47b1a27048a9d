"""Models from elsewhere, asked as ours are: a name in a Python module, an ONNX file, or predictions in a file."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ciplearn._core.columns import holds_numbers
from ciplearn._core.errors import CiplearnError, InputError, MissingDependencyError
from ciplearn._core.wording import as_list

Array = np.ndarray[Any, Any]

# Types of an ONNX file's inputs -> what a column is turned into.
_TENSORS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(string)": np.object_,
}


@dataclass(frozen=True, eq=False)
class Foreign:
    """A model that was not trained here."""

    name: str  # what it is called in messages
    ask: Callable[[pd.DataFrame], Any]  # from a frame to one number per row, one probability per class, or labels
    classes: Sequence[Any] | None = None  # the labels that the columns of its answer stand for, where it says so
    inputs: tuple[str, ...] | None = None  # the columns that it reads, where it says so
    is_ours: bool = False  # whether it was trained here after all, and only its labels are put into another order

    def answer(self, frame: pd.DataFrame) -> Array:  # (n,) or (n, q)
        """Ask about rows; whatever goes wrong in there is said in one sentence."""
        rows = f"{len(frame)} rows with the columns {', '.join(map(str, frame.columns))}"
        advice = "correct it, or name the columns that it reads with --inputs"
        with in_a_sentence(f"{self.name} failed on {rows}", advice):
            # A copy: it may write into what it is shown.
            answer = self.ask(frame.copy() if self.inputs is None else frame[list(self.inputs)])
            if isinstance(answer, pd.Series | pd.DataFrame) and set(answer.index) == set(frame.index):
                answer = answer.reindex(frame.index)
            answer = np.asarray(answer.astype(float).filled(np.nan) if np.ma.is_masked(answer) else answer)
        if answer.ndim not in (1, 2) or len(answer) != len(frame) or 0 in answer.shape[1:]:
            why = f"{self.name} returned shape {answer.shape} for {len(frame)} rows"
            raise InputError(f"{why}; return one number per row, or one probability per class.")
        return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer


class Numbers:
    """A foreign model of a number."""

    def __init__(self, foreign: Foreign) -> None:
        self.name, self.is_ours, self._foreign = foreign.name, foreign.is_ours, foreign

    def predict(self, frame: pd.DataFrame) -> Array:  # (n,)
        """Return one number per row."""
        answer = self._foreign.answer(frame)
        if answer.ndim != 1 or answer.dtype.kind not in "iuf":
            kind = _described(answer)
            raise InputError(f"{self.name} returned {kind}; the outcome is a number, so return one per row.")
        if not np.isfinite(answer).all():
            raise InputError(f"{self.name} returned NaN or infinity; return one finite number per row.")
        return answer.astype(np.float64)


class Probabilities:
    """A foreign model of labels: its classes are those of the outcome, the positive one of two stands last."""

    def __init__(self, foreign: Foreign, labels: Sequence[Any], positive: str | None = None) -> None:
        self.name, self.is_ours, self._foreign = foreign.name, foreign.is_ours, foreign
        of_outcome = {bare(label): label for label in labels}
        given = list(labels) if foreign.classes is None else list(foreign.classes)
        check_classes(self.name, given, labels)
        classes = [of_outcome.get(bare(label), label) for label in given]
        # By default the order of the outcome's labels, whatever that of the columns is.
        places = {label: column for column, label in enumerate(labels)}
        by_label = sorted(range(len(classes)), key=lambda column: places.get(classes[column], len(places)))
        order = positive_last(classes, positive) if positive is not None else by_label
        # One number per row is the probability of the positive label, whichever that is.
        self._columns, self.classes_ = order, np.array([classes[column] for column in order], dtype=object)

    def predict_proba(self, frame: pd.DataFrame) -> Array:  # (n, classes)
        """Return one probability per class."""
        answer = self._foreign.answer(frame)
        if answer.dtype.kind not in "iuf":
            kind = _described(answer)
            raise InputError(f"{self.name} returned {kind}; return probabilities, which a label does not tell.")
        answer = answer.astype(np.float64)
        if not ((answer >= -1e-6) & (answer <= 1 + 1e-6)).all():
            worst = float(answer.flat[np.abs(answer - 0.5).argmax()])
            raise InputError(f"{self.name} returned {worst:.4g}, which is no probability; return numbers from 0 to 1.")
        if answer.ndim == 1 and len(self.classes_) == 2:
            table = np.column_stack([1 - answer, answer])
        elif answer.ndim == 2 and answer.shape[1] == len(self.classes_):
            table = answer[:, self._columns]
        else:
            kind = f"{_described(answer)}, and the outcome has {len(self.classes_)} labels"
            raise InputError(f"{self.name} returned {kind}; return one probability per label.")
        return np.clip(table, 0.0, 1.0)


def check_classes(name: str, classes: Iterable[Any], labels: Iterable[Any]) -> None:
    """Refuse a model that names a class twice, or none of the outcome's labels."""
    given, held = [bare(label) for label in classes], dict.fromkeys(bare(label) for label in labels)
    knows = f"{name} knows the classes {as_list(map(str, classes))}"
    if len(set(given)) < len(given):
        raise InputError(f"{knows}, one of them twice; name each once.")
    if held and not set(given) & set(held):
        raise InputError(f"{knows}, and the outcome holds {as_list(list(held)[:5])}; they have none in common.")


def positive_last(classes: Sequence[Any], positive: str | None) -> list[int]:
    """Return the order in which the positive label of two stands last; any order of more."""
    order = list(range(len(classes)))
    if positive is None:
        return order
    last = [column for column in order if bare(classes[column]) == bare(positive)]
    if len(classes) != 2 or not last:
        names = as_list(map(str, classes))
        raise InputError(f"--positive names {positive!r}, and the classes are {names}; name one of two.")
    return [1 - last[0], *last]


def from_module(spec: str) -> Foreign:
    """Import ``package.module:name``: a fitted model, a function of a frame, or a function that makes one of these.

    Modules are looked for where Python looks, and in the working folder.
    """
    module_name, _, name = spec.partition(":")
    if spec.lower().endswith((".joblib", ".pkl", ".pickle")):
        raise InputError(
            f"--predictor {spec} is a file that may run anything when it is loaded, so you load it yourself: write "
            f"`import joblib; model = joblib.load({spec!r})` into loaded.py, and pass --predictor loaded:model."
        )
    if not module_name or not name:
        raise InputError(f"--predictor must be package.module:name, got {spec!r}; pass for example trees:model.")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    with in_a_sentence(f"--predictor {spec} could not be imported", "correct the name or the module"):
        model: Any = importlib.import_module(module_name)
        for part in name.split("."):
            model = getattr(model, part)
        if _method_of(model) is None and _makes_a_model(model):
            model = model()
        ask = _method_of(model) or model
        if isinstance(model, type) or not callable(ask):
            raise InputError(
                f"--predictor {spec} is {'a class' if isinstance(model, type) else type(model).__name__}; name a "
                "fitted model, a function of a table, or a function without arguments that returns one."
            )
        names, classes = (getattr(model, each, None) for each in ("feature_names_in_", "classes_"))
        inputs = None if names is None else tuple(map(str, names))
        gives_probabilities = callable(getattr(model, "predict_proba", None))
        return Foreign(spec, ask, list(classes) if gives_probabilities and classes is not None else None, inputs)


def _method_of(model: Any) -> Any:
    """The method that a fitted model is asked by, if it has one."""
    methods = () if isinstance(model, type) else (getattr(model, name, None) for name in ("predict_proba", "predict"))
    return next(filter(callable, methods), None)


@contextmanager
def in_a_sentence(what: str, advice: str) -> Iterator[None]:
    """Run the code of others: what it prints is kept from our answer, and whatever goes wrong is one sentence."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (CiplearnError, KeyboardInterrupt):
        raise
    except BaseException as error:
        reason = "it does not say why"
        with suppress(Exception):
            reason = " ".join(str(error).split())[:300]
        raise InputError(f"{what}: {type(error).__name__}: {reason}; {advice}.") from error


def from_onnx(path: Path, inputs: Sequence[str] | None, columns: Collection[str]) -> Foreign:
    """Open an ONNX file: with one input per column, named alike, or with one for a table of the columns ``inputs``."""
    session = onnx_session(path)
    taken = {each.name: each for each in session.get_inputs()}
    strange = [each for each in taken.values() if each.type not in _TENSORS]
    if strange:
        raise InputError(f"{path} takes {strange[0].name!r} as {strange[0].type}, not as numbers or text; export anew.")
    reads = {name: [name] for name in taken}
    if not set(taken) <= set(columns):
        if len(taken) > 1:
            name = next(name for name in taken if name not in columns)
            raise InputError(f"{path} reads {name!r}, which is no column that the graph knows; name it in the graph.")
        (table,) = taken.values()
        width = table.shape[1] if len(table.shape) == 2 and isinstance(table.shape[1], int) else "some"
        if inputs is None or width not in ("some", len(inputs)):
            named = "none" if inputs is None else len(inputs)
            why = f"{path} takes a table of {width} columns, and --inputs names {named}"
            raise InputError(f"{why}; name them in the order in which the model was trained.")
        reads = {table.name: list(inputs)}

    def ask(frame: pd.DataFrame) -> Array:
        tensors = {name: _tensor(frame[names], taken[name].type, path) for name, names in reads.items()}
        return _of_outputs(session.run(None, tensors))

    return Foreign(str(path), ask, inputs=tuple(name for names in reads.values() for name in names))


def onnx_session(path: Path) -> Any:
    """Open an ONNX file, on one thread of the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        why = "ONNX files need onnxruntime, which is not installed"
        raise MissingDependencyError(f"{why}; pip install 'ciplearn[onnx]'.") from error
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; check the path of --onnx.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # What goes wrong is said by us, in a sentence.
    options.log_severity_level = 4
    kind = {"providers": ["CPUExecutionProvider"], "enable_fallback": False}
    try:
        # Without a second try, which would be announced on standard output.
        return onnxruntime.InferenceSession(str(path), options, **kind)
    except Exception as error:
        raise InputError(f"{path} cannot be read as ONNX ({type(error).__name__}); export the model anew.") from error


def _of_outputs(outputs: Sequence[Any]) -> Array:
    """Probabilities where there are any, else numbers; labels only where there is nothing else."""
    for each in outputs:
        if isinstance(each, list) and each and isinstance(each[0], dict):
            return np.array([[row[label] for label in sorted(each[0])] for row in each])
    tables = [np.asarray(each) for each in outputs]
    floats = [table for table in tables if np.issubdtype(table.dtype, np.floating)]
    return max(floats, key=np.size) if floats else tables[0]


def _tensor(frame: pd.DataFrame, kind: str, path: Path) -> Array:  # (n, columns)
    if kind == "tensor(string)":
        return frame.astype(str).to_numpy(dtype=object)
    text = [column for column in frame.columns if not holds_numbers(frame[column])]
    if text:
        raise InputError(f"{path} takes numbers, and {text[0]!r} holds text; export it with one input per column.")
    return frame.to_numpy(dtype=_TENSORS[kind])


def _makes_a_model(function: Any) -> bool:
    """Whether something may be called without arguments, and so gives a model rather than predictions."""
    if not callable(function) or isinstance(function, type):
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    return all(
        each.kind in keyword or (each.default is not each.empty and each.kind is not each.VAR_POSITIONAL)
        for each in parameters
    )


def bare(label: Any) -> str:
    """A label as text; 1, 1.0 and "1" are one."""
    text = str(label)
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text


def _described(answer: Array) -> str:
    return f"{answer.dtype} values of shape {answer.shape}"
