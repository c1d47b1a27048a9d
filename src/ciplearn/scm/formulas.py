"""Formulas as text, such as ``sin(A) + 0.2 * u``: a tree of a few known kinds of parts; nothing else is ever run.

All arithmetic is in floats, so that no number grows beyond them; trees have a bounded depth.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ciplearn._core.errors import InputError

# Name -> function and number of arguments.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "abs": (np.abs, 1),
    "cos": (np.cos, 1),
    "exp": (np.exp, 1),
    "floor": (np.floor, 1),
    "log": (np.log, 1),
    "maximum": (np.maximum, 2),
    "minimum": (np.minimum, 2),
    "round": (np.round, 1),
    "sign": (np.sign, 1),
    "sin": (np.sin, 1),
    "sqrt": (np.sqrt, 1),
    "tan": (np.tan, 1),
    "tanh": (np.tanh, 1),
    "where": (np.where, 3),
}
_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.Mod: np.mod,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_COMPARISONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

# Values by name -> value.
_Function = Callable[[Mapping[str, Any]], Any]

_PARENTS = "p"
_LONGEST, _DEEPEST = 10_000, 200


def _has_scale(location: float = 0.0, scale: float = 1.0) -> bool:
    return scale > 0


# Name -> how many numbers at most, which of them make a law, and the law of these.
_LAWS: dict[str, tuple[int, Callable[..., bool], Callable[..., Any]]] = {
    "bernoulli": (1, lambda p: 0 <= p <= 1, stats.bernoulli),
    "exponential": (1, lambda scale=1.0: scale > 0, lambda scale=1.0: stats.expon(scale=scale)),
    "laplace": (2, _has_scale, stats.laplace),
    "logistic": (2, _has_scale, stats.logistic),
    "normal": (2, _has_scale, stats.norm),
    "uniform": (2, lambda low=0.0, high=1.0: low < high, lambda low=0.0, high=1.0: stats.uniform(low, high - low)),
}


@dataclass(frozen=True)
class Formula:
    """A checked formula: as it was written, what computes it from the values of its names, and what it belongs to."""

    text: str
    function: _Function
    where: str

    @classmethod
    def read(cls, text: Any, names: Collection[str], where: str) -> Formula:
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
    most, makes_a_law, law = _LAWS[name]
    try:
        fits = len(numbers) <= most and makes_a_law(*numbers)
    except TypeError:
        fits = False
    if not fits:
        raise InputError(
            f"{where} is no law, got {_short(text)}; write for example normal(0, 1) with a deviation above zero, "
            "uniform(-1, 1) with the lower end first, or bernoulli(0.5) with a probability."
        )
    return law(*numbers)


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
    if _depth(tree) > _DEEPEST:
        raise InputError(f"{where} has more than {_DEEPEST} parts within each other; write it in fewer, or use code.")
    return tree


def _depth(tree: ast.AST) -> int:
    """How many parts stand within each other, without recursion."""
    deepest, level = 0, [tree]
    while level and deepest <= _DEEPEST:
        deepest += 1
        level = [part for node in level for part in ast.iter_child_nodes(node)]
    return deepest


def _number(tree: ast.expr, where: str) -> float:
    function, used = _compiled(tree, where)
    if set(used) - {"pi"} or _is_text(tree):
        raise InputError(
            f"{where} must have numbers only, got {_short(ast.unparse(tree))}; write for example 'normal(0, 1)'."
        )
    return float(Formula(ast.unparse(tree), function, where)({}))


def _compiled(tree: ast.expr, where: str) -> tuple[_Function, list[str]]:
    """Return what computes a tree, and the names it uses, or complain about the first part of an unknown kind."""
    parts: list[ast.expr]
    function: Callable[..., Any]
    match tree:
        case ast.Constant(value=str() as text):
            return lambda values: text, []
        case ast.Constant(value=bool() | int() | float() as value) if _is_finite(value):
            number = np.float64(value)
            return lambda values: number, []
        case ast.Name(id="pi"):
            return lambda values: values.get("pi", np.float64(np.pi)), ["pi"]
        case ast.Name(id=name):
            return lambda values: values[name], [name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == _PARENTS:
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
            function, wanted = _FUNCTIONS[name]
            if len(arguments) != wanted:
                raise InputError(
                    f"{where} calls {name} with {len(arguments)} arguments, got {_short(ast.unparse(tree))}; "
                    f"{name} takes {wanted}."
                )
            parts = arguments if name == "where" else _numeric(arguments, tree, where)
        case _:
            raise InputError(
                f"{where} holds {_short(ast.unparse(tree))}, which formulas do not have; use numbers, names, "
                f"+ - * / ** %, comparisons and {', '.join(_FUNCTIONS)}."
            )
    inner = [_compiled(part, where) for part in parts]
    return lambda values: function(*(part(values) for part, _ in inner)), [name for _, used in inner for name in used]


def _numeric(parts: list[ast.expr], around: ast.expr, where: str) -> list[ast.expr]:
    if any(map(_is_text, parts)):
        raise InputError(
            f"{where} computes with text, got {_short(ast.unparse(around))}; text can be compared with == and !=, and "
            "be a result of where."
        )
    return parts


def _is_text(tree: ast.expr) -> bool:
    match tree:
        case ast.Constant(value=str()):
            return True
        case ast.Call(func=ast.Name(id="where"), args=[_, *results]):
            return any(map(_is_text, results))
    return False


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _short(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
