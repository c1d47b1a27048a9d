"""The errors that ciplearn raises on purpose, for ``except``.

Each also inherits the builtin that people already catch: ``except ValueError`` catches an `InputError`.
"""

from ciplearn._core.errors import (
    CiplearnError,
    GraphError,
    GraphSyntaxError,
    InputError,
    InputTypeError,
    MissingDataError,
    MissingDependencyError,
    NumericalError,
)

__all__ = [
    "CiplearnError",
    "GraphError",
    "GraphSyntaxError",
    "InputError",
    "InputTypeError",
    "MissingDataError",
    "MissingDependencyError",
    "NumericalError",
]
