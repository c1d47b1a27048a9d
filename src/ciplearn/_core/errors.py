"""The library's own errors.

Each message is one sentence in three parts: what is wrong, what was received, what to do. Each class also inherits the
builtin that people already catch, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


class CiplearnError(Exception):
    """Base of every error that ciplearn raises on purpose.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.GraphError, ciplearn.errors.CiplearnError)
    True
    """

    def __init__(self, *parts: Any) -> None:
        # What was received may be an array that is shown in several lines.
        super().__init__(*(re.sub(r"\s*\n\s*", " ", part) if isinstance(part, str) else part for part in parts))


class InputError(CiplearnError, ValueError):
    """An argument has the wrong shape, value or content.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.InputError, ValueError)
    True
    """


class InputTypeError(InputError, TypeError):
    """An argument has the wrong type.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.InputTypeError, TypeError)
    True
    """


class NumericalError(CiplearnError, ArithmeticError):
    """A factorisation or a solve failed; the message carries the numbers.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.NumericalError, ArithmeticError)
    True
    """


class GraphError(CiplearnError, ValueError):
    """A causal graph is malformed, or a name is not in it.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.GraphError, ValueError)
    True
    """


class GraphSyntaxError(GraphError):
    """Graph text that the reader does not understand; `line` and `column`, from 1, say where reading stopped.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.GraphSyntaxError, ciplearn.errors.GraphError)
    True
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.line, self.column = line, column


class MissingDependencyError(CiplearnError, ImportError):
    """An optional package is needed; the message names the extra that brings it.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.MissingDependencyError, ImportError)
    True
    """


class MissingDataError(CiplearnError, FileNotFoundError):
    """A data set is neither on this machine nor could it be fetched; the message says how to provide it.

    >>> import ciplearn
    >>> issubclass(ciplearn.errors.MissingDataError, FileNotFoundError)
    True
    """


def optional_module(name: str, needed_by: str, advice: str) -> Any:
    """Import a module that may not be installed, or say that something needs it and what to do."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"{needed_by}, which is not installed; {advice}.") from error


class CiplearnWarning(UserWarning):
    """Base of every warning that ciplearn gives, so that one kind can be filtered without reading its text.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.CiplearnWarning)
    """


class NotCertifiedWarning(CiplearnWarning):
    """The graph does not certify the statement that is enforced.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("error", ciplearn.errors.NotCertifiedWarning)
    """


class NothingProtectedWarning(CiplearnWarning):
    """The protected columns never vary in the rows.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("error", ciplearn.errors.NothingProtectedWarning)
    """


class NamesWarning(CiplearnWarning):
    """A column holds names, which nothing can be learnt from.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.NamesWarning)
    """


class OddRowsWarning(CiplearnWarning):
    """Rows to predict are unlike those of training: what `UnseenLevelsWarning` and `FarOutsideWarning` have in common.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.OddRowsWarning)
    """


class UnseenLevelsWarning(OddRowsWarning):
    """Rows to predict hold labels that training never saw.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.UnseenLevelsWarning)
    """


class FarOutsideWarning(OddRowsWarning):
    """Rows to predict hold numbers of another unit than those of training.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.FarOutsideWarning)
    """


class CopiesWarning(CiplearnWarning):
    """Some rows are copies of others.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("error", ciplearn.errors.CopiesWarning)
    """


class NothingGainedWarning(CiplearnWarning):
    """A search for gamma cannot choose, since even an unconstrained predictor gains nothing, or all lose too much.

    >>> import ciplearn, warnings
    >>> warnings.simplefilter("ignore", ciplearn.errors.NothingGainedWarning)
    """
