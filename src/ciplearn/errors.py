"""The errors that ciplearn raises on purpose, for ``except``, and its warnings, for filters.

Each also inherits the builtin that people already catch: ``except ValueError`` catches an `InputError`.
"""

from ciplearn._core.errors import (
    CiplearnError,
    CiplearnWarning,
    CopiesWarning,
    FarOutsideWarning,
    GraphError,
    GraphSyntaxError,
    InputError,
    InputTypeError,
    MissingDataError,
    MissingDependencyError,
    NamesWarning,
    NotCertifiedWarning,
    NothingGainedWarning,
    NothingProtectedWarning,
    NumericalError,
    OddRowsWarning,
    UnseenLevelsWarning,
)

__all__ = ["CiplearnError", "CiplearnWarning", "CopiesWarning", "FarOutsideWarning", "GraphError", "GraphSyntaxError"]
__all__ += ["InputError", "InputTypeError", "MissingDataError", "MissingDependencyError", "NamesWarning"]
__all__ += ["NotCertifiedWarning", "NothingGainedWarning", "NothingProtectedWarning", "NumericalError"]
__all__ += ["OddRowsWarning", "UnseenLevelsWarning"]
