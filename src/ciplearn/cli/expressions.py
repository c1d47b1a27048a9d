"""Formulas as text, such as ``sin(A) + 0.2 * u``: a tree of a few known kinds of parts; nothing else is ever run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ciplearn._core.errors import InputError

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "round": np.round,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "where": np.where,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LAWS: dict[str, Callable[..., Any]] = {
    "bernoulli": stats.bernoulli,
    "exponential": lambda scale=1.0: stats.expon(scale=scale),
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "normal": stats.norm,
    "uniform": lambda low=0.0, high=1.0: stats.uniform(low, high - low),
}
_PARENTS = "p"


@dataclass(frozen=True)
class Formula:
    """A checked formula.

    Attributes
    ----------
    text : str
        As it was written.
    tree : ast.expr
        Its parts, all of known kinds.
    """

    text: str
    tree: ast.expr

    @classmethod
    def read(cls, text: Any, names: Collection[str], where: str) -> Formula:
        """Parse a formula over some names; a name that is no identifier is written ``p["hours per week"]``."""
        tree = _parsed(text, where)
        for name in _names(tree, where):
            if name not in names and name != "pi":
                raise InputError(
                    f"{where} names {name!r}, which it may not use; it may use {', '.join(names)} and functions "
                    f"such as {', '.join(list(_FUNCTIONS)[:4])}."
                )
        return cls(str(text), tree)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Return the value where the names have these values."""
        return _value(self.tree, values)


def read_law(text: Any, where: str) -> Any:
    """Read a law of noise: a number for none, or for example ``normal(0, 1)``."""
    match _parsed(text, where):
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _LAWS:
            numbers = [_number(argument, where) for argument in arguments]
            try:
                return _LAWS[name](*numbers)
            except (TypeError, ValueError) as error:
                raise InputError(f"{where} is no law, got {text!r}; write for example 'normal(0, 1)'.") from error
        case ast.Call():
            raise InputError(f"{where} is no law, got {text!r}; use one of {', '.join(_LAWS)}, or a number.")
        case tree:
            return _number(tree, where)


def _parsed(text: Any, where: str) -> ast.expr:
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str):
        raise InputError(f"{where} must be a formula, got {text!r}; write for example 'A + u'.")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{where} is no formula, got {text!r}; write for example 'sin(A) + u'.") from error


def _number(tree: ast.expr, where: str) -> float:
    if _names(tree, where):
        raise InputError(
            f"{where} must have numbers only, got {ast.unparse(tree)!r}; write for example 'normal(0, 1)'."
        )
    return float(_value(tree, {}))


def _names(tree: ast.expr, where: str) -> list[str]:
    """Return the names that a tree uses, or complain about the first part of an unknown kind."""
    match tree:
        case ast.Constant(value=bool() | int() | float() | str()):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == _PARENTS:
            return [key]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return [*_names(left, where), *_names(right, where)]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _OPERATORS:
            return _names(operand, where)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPERATORS:
            return [*_names(left, where), *_names(right, where)]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return [used for argument in arguments for used in _names(argument, where)]
    raise InputError(
        f"{where} holds {ast.unparse(tree)!r}, which formulas do not have; use numbers, names, + - * / ** %, "
        f"comparisons and {', '.join(_FUNCTIONS)}."
    )


def _value(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return np.pi if name == "pi" and name not in values else values[name]
        case ast.Subscript(slice=ast.Constant(value=key)):
            return values[str(key)]
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=sign, operand=operand):
            return _OPERATORS[type(sign)](_value(operand, values))
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return _OPERATORS[type(sign)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
    raise InputError(f"{ast.unparse(tree)!r} is no part of a formula.")
