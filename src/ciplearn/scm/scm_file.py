"""A structural causal model from a user's file: formulas in YAML, TOML or JSON, or Python where that was allowed.

equations: {Z: u, A: sin(Z) + u, Y: A ** 2 + u}
noise: {Z: "normal(0, 1)", A: "normal(0, 1)", Y: "normal(0, 0.1)"}
categories: {}      # node -> labels
inverses: {}        # node -> formula of `value`, where an equation is not linear in u

A formula is a tree of a few known kinds of parts, of bounded depth, in floats alone; nothing else is ever run.
"""

from __future__ import annotations

import ast
import math
import operator
import runpy
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ciplearn._core.errors import CiplearnError, InputError
from ciplearn._core.plain_data import read_mapping
from ciplearn.causal import CausalGraph
from ciplearn.scm.kinds import Categories
from ciplearn.scm.model import StructuralCausalModel

# What a formula may call, under its name in numpy -> number of arguments.
_FUNCTIONS = dict.fromkeys(["abs", "cos", "exp", "floor", "log", "round", "sign", "sin", "sqrt", "tan", "tanh"], 1)
_FUNCTIONS |= {"maximum": 2, "minimum": 2, "where": 3}
_Signs = dict[type[ast.AST], Callable[..., Any]]
_ARITHMETIC: _Signs = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
_ARITHMETIC |= {ast.Pow: np.power, ast.Mod: np.mod, ast.USub: np.negative, ast.UAdd: np.positive}
_COMPARISONS: _Signs = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_COMPARISONS |= {ast.Eq: operator.eq, ast.NotEq: operator.ne}

# Values by name -> value.
_Function = Callable[[Mapping[str, Any]], Any]

# Characters of a formula, and parts within each other.
_LONGEST, _DEEPEST = 10_000, 200

_SECTIONS = ("equations", "noise", "categories", "inverses")

# Laws by name; scipy says whether numbers are the parameters of one.
_LAWS: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda p: stats.bernoulli(p),
    "exponential": lambda scale=1.0: stats.expon(0.0, scale),
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "normal": stats.norm,
    "uniform": lambda low=0.0, high=1.0: stats.uniform(low, high - low),
}


@dataclass(frozen=True)
class ParsedFormula:
    """A checked formula: as it was written, what computes it from the values of its names, and what it belongs to."""

    text: str
    function: _Function
    where: str

    @classmethod
    def read(cls, text: Any, names: Collection[str], where: str) -> ParsedFormula:
        """Parse a formula over some names; a name that is no identifier is written ``p["hours per week"]``."""
        function, used = _compiled(_parsed(text, where), where)
        formula = cls(str(text), function, where)
        for name in used:
            if name not in names and name != "pi":
                raise InputError(
                    f"{where} names {name!r}, which it may not use; it may use {', '.join(names)} and functions "
                    f"such as {', '.join(list(_FUNCTIONS)[:4])}."
                )
        if not set(used) & set(names):
            # The same for all rows, so a mistake in it shows at once.
            formula({})
        return formula

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Return the value where the names have these values; one that is not finite is refused."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = self.function(values)
            except (TypeError, ValueError) as error:
                raise InputError(f"{self.where} cannot be computed, got {_short(self.text)}: {error}.") from error
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)].flat[0]
            raise InputError(
                f"{self.where} gives {wrong} in {int((~np.isfinite(array)).sum())} of {array.size} rows, got "
                f"{_short(self.text)}; change it so that it is a finite number everywhere."
            )
        return value


def read_law(text: Any, where: str) -> Any:
    """Read a law of noise: a number for none, or for example ``normal(0, 1)``."""
    tree = _parsed(text, where)
    match tree:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _LAWS:
            numbers = [_number(argument, where) for argument in arguments]
        case ast.Name(id=name) if name in _LAWS:
            numbers = []
        case ast.Call():
            raise InputError(f"{where} is no law, got {_short(text)}; use one of {', '.join(_LAWS)}, or a number.")
        case _:
            return _number(tree, where)
    try:
        law = _LAWS[name](*numbers)
    except TypeError:
        law = None
    # What is no law has no support.
    if law is None or math.isnan(law.support()[0]):
        raise InputError(
            f"{where} is no law, got {_short(text)}; write for example normal(0, 1) with a deviation above zero, "
            "uniform(-1, 1) with the lower end first, or bernoulli(0.5) with a probability."
        )
    return law


def _parsed(text: Any, where: str) -> ast.expr:
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str):
        raise InputError(f"{where} must be a formula, got {_short(text)}; write for example 'A + u'.")
    if len(text) > _LONGEST:
        raise InputError(f"{where} has {len(text)} characters, more than {_LONGEST}; write it shorter.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{where} is no formula, got {_short(text)}; write for example 'sin(A) + u'.") from error
    depth = 0
    level: list[ast.AST] = [tree]
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise InputError(f"{where} has more than {_DEEPEST} parts in each other; write it in fewer, or use code.")
        level = [part for node in level for part in ast.iter_child_nodes(node)]
    return tree


def _number(tree: ast.expr, where: str) -> float:
    function, used = _compiled(tree, where)
    if set(used) - {"pi"} or _is_text(tree):
        why = f"{where} must have numbers only, got {_short(ast.unparse(tree))}"
        raise InputError(f"{why}; write for example 'normal(0, 1)'.")
    return float(ParsedFormula(ast.unparse(tree), function, where)({}))


def _compiled(tree: ast.expr, where: str) -> tuple[_Function, list[str]]:
    """Return what computes a tree, and the names it uses, or complain about the first part of an unknown kind."""
    parts: list[ast.expr]
    function: Callable[..., Any]
    match tree:
        case ast.Constant(value=str() as text):
            return lambda values: text, []
        case ast.Constant(value=bool() | int() | float() as value) if abs(value) <= sys.float_info.max:
            number = np.float64(value)
            return lambda values: number, []
        case ast.Name(id="pi"):
            return lambda values: values.get("pi", np.float64(np.pi)), ["pi"]
        case ast.Name(id=name):
            return lambda values: values[name], [name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == "p":
            return lambda values: values[key], [key]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
            function, parts = _ARITHMETIC[type(sign)], _numeric([left, right], tree, where)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _ARITHMETIC:
            function, parts = _ARITHMETIC[type(sign)], _numeric([operand], tree, where)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            compare = _COMPARISONS[type(sign)]
            parts = [left, right] if isinstance(sign, ast.Eq | ast.NotEq) else _numeric([left, right], tree, where)

            def function(one: Any, other: Any) -> Any:
                return np.asarray(compare(one, other), dtype=np.float64)[()]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            function = getattr(np, name)
            if len(arguments) != _FUNCTIONS[name]:
                why = f"{where} calls {name} with {len(arguments)} arguments, got {_short(ast.unparse(tree))}"
                raise InputError(f"{why}; {name} takes {_FUNCTIONS[name]}.")
            parts = arguments if name == "where" else _numeric(arguments, tree, where)
        case _:
            why = f"{where} holds {_short(ast.unparse(tree))}, which formulas do not have"
            raise InputError(f"{why}; use numbers, names, + - * / ** %, comparisons and {', '.join(_FUNCTIONS)}.")
    inner = [_compiled(part, where) for part in parts]
    return lambda values: function(*(part(values) for part, _ in inner)), [name for _, used in inner for name in used]


def _numeric(parts: list[ast.expr], around: ast.expr, where: str) -> list[ast.expr]:
    if any(map(_is_text, parts)):
        why = f"{where} computes with text, got {_short(ast.unparse(around))}"
        raise InputError(f"{why}; text can be compared with == and !=, and be a result of where.")
    return parts


def _is_text(tree: ast.expr) -> bool:
    match tree:
        case ast.Constant(value=str()):
            return True
        case ast.Call(func=ast.Name(id="where"), args=[_, *results]):
            return any(map(_is_text, results))
    return False


def _short(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def read_scm(path: Path, graph: CausalGraph, *, run_code: bool) -> StructuralCausalModel:
    """Return the model that a file describes: formulas of the graph's parents, or Python that sets ``scm``."""
    if not path.is_file():
        missing = f"{str(path)!r} is a folder or a device" if path.exists() else f"There is no file {str(path)!r}"
        raise InputError(f"{missing}; check the path.")
    if path.suffix.lower() != ".py":
        return _from_formulas(path, graph)
    if not run_code:
        why = f"{path} is Python, and reading it would run it"
        raise InputError(f"{why}; pass --run-code if you trust it, or write YAML.")
    try:
        names = runpy.run_path(str(path))
    except CiplearnError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path} failed with {type(error).__name__}: {error}; correct the file.") from error
    scm = names.get("scm")
    if not isinstance(scm, StructuralCausalModel):
        raise InputError(f"{path} must set scm to a StructuralCausalModel, got {type(scm).__name__}; assign it.")
    if lost := [node for node in graph.observed if node not in scm.graph.nodes]:
        raise InputError(f"The causal model of {path} lacks the node {lost[0]!r} of the predictor's graph; add it.")
    return scm


def _from_formulas(path: Path, graph: CausalGraph) -> StructuralCausalModel:
    content = read_mapping(path)
    if unknown := [key for key in content if key not in _SECTIONS]:
        raise InputError(f"{path} has the unknown entry {unknown[0]!r}; known are {', '.join(_SECTIONS)}.")
    parts = {section: content.get(section) or {} for section in _SECTIONS}
    for section, entries in parts.items():
        if not isinstance(entries, dict):
            raise InputError(f"{section} in {path} must map nodes to text, got {entries!r}; write lines like 'A: u'.")
        graph.known(entries, section)
    written, noise, categories, inverses = parts.values()
    # Formulas first: text that is code is named for what it is.
    equations = {node: _function(path, graph, node, text, "equation") for node, text in written.items()}
    if absent := [node for node in graph.nodes if node not in equations]:
        raise InputError(f"{path} has no equation for {absent[0]!r}; write one for every node, latent ones too.")
    for node, labels in categories.items():
        if not isinstance(labels, list) or not all(isinstance(label, str | int | float) for label in labels):
            raise InputError(f"The categories of {node} in {path} must be a list of labels, got {labels!r}; write one.")
    model = StructuralCausalModel(
        graph,
        equations=equations,
        noise={node: read_law(text, f"The noise of {node} in {path}") for node, text in noise.items()},
        inverses={node: _function(path, graph, node, text, "inverse") for node, text in inverses.items()},
        kinds={node: Categories(labels) for node, labels in categories.items()},
    )
    # A node that nobody asks for is computed here or never: what it cannot say must not pass unseen.
    model.sample(100, random_state=0)
    return model


def _function(path: Path, graph: CausalGraph, node: str, text: Any, role: str) -> Callable[[Any, Any], Any]:
    """Read an equation, a formula of the parents and ``u``, or an inverse, a formula of the parents and ``value``."""
    where, parents = f"The {role} of {node} in {path}", graph.parents(node)
    argument, what = ("u", "the noise") if role == "equation" else ("value", "the value of the node")
    if argument in parents:
        raise InputError(f"{where} calls {what} {argument!r}, got a parent of that name; rename the parent.")
    formula = ParsedFormula.read(text, (*parents, argument), where)
    return lambda p, given: formula({**p, argument: given})
