"""A warm start: training goes on from the network of the last fit, on rows that this network was made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ciplearn._core.errors import GraphError, InputError
from ciplearn._core.wording import as_list

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

# Columns, levels or classes that a refusal names.
_NAMED = 12


@contextmanager
def going_on(estimator: CIPEstimator) -> Iterator[Callable[[], None]]:
    """Keep the last fit where the next one is refused; without a warm start there is nothing to keep.

    Yields a function to call when the estimator knows its columns and its target, which refuses others than the last.
    """
    known = dict(vars(estimator))
    if not estimator.warm_start or "module_" not in known:
        yield lambda: None
        return
    try:
        yield partial(_refuse_others, known, vars(estimator))
    except (InputError, GraphError):
        estimator.__dict__.clear()
        estimator.__dict__.update(known)
        raise


def _refuse_others(known: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    last, own = _task(known), _task(found)
    for what in last:
        if last[what] != own[what]:
            raise InputError(
                f"A warm start goes on from a network whose {what} are {_shown(last[what])}, got {_shown(own[what])}; "
                f"pass the same {what}, or warm_start=False."
            )


def _task(known: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What a network takes and says."""
    columns = known["encoding_"].columns
    task = {"inputs": [column.name for column in columns]}
    task |= {f"values of {column.name!r}": list(getattr(column, "levels", ["numbers"])) for column in columns}
    if "classes_" in known:
        return task | {"classes": known["classes_"].tolist()}
    outputs = len(known["target_low_"])
    return task | {"outcomes": ["one number" if outputs == 1 else f"{outputs} numbers"]}


def _shown(values: list[Any]) -> str:
    more = [f"{len(values) - _NAMED} more"] if len(values) > _NAMED else []
    return as_list([*map(str, values[:_NAMED]), *more])
