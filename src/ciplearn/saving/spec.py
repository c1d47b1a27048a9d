"""Kernels, penalties and encodings as JSON-ready data, and back; only kinds that are listed here are ever made.

What was read back is checked: a changed file is refused, and never predicts.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from ciplearn import kernels, penalties
from ciplearn._core.columns import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import InputError

if TYPE_CHECKING:
    from ciplearn.estimators.base import CIPEstimator

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        kernels.Categorical,
        kernels.Gaussian,
        kernels.Laplace,
        kernels.Linear,
        kernels.Product,
        kernels.Sum,
        kernels.Nystroem,
        kernels.OneHot,
        kernels.RandomFourier,
        penalties.CIRCE,
        penalties.HSCIC,
        penalties.HSIC,
        penalties.MMD,
        penalties.ResidualHSCIC,
        CategoryColumn,
        NumberColumn,
        TableEncoding,
    )
}


def to_spec(value: Any) -> Any:
    """Return a value as JSON-ready data."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        if kind not in _KINDS:
            raise InputError(f"{value!r} cannot be saved, ciplearn does not know {kind}; save the weights yourself.")
        return {"kind": kind, **{field.name: to_spec(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, tuple | list):
        return [to_spec(entry) for entry in value]
    return value


def from_spec(spec: Any) -> Any:
    """Return the value that `to_spec` has described."""
    if isinstance(spec, list):
        return tuple(from_spec(entry) for entry in spec)
    if not isinstance(spec, dict):
        return spec
    arguments = {name: from_spec(entry) for name, entry in spec.items() if name != "kind"}
    kind = _KINDS.get(str(spec.get("kind")))
    if kind is None:
        raise InputError(f"The model file names an unknown kind {spec.get('kind')!r}; it was changed or is too new.")
    try:
        # Products and sums take their parts one by one.
        value = kind(*arguments["parts"]) if "parts" in arguments else kind(**arguments)
        _check_column(value)
    except TypeError as error:
        raise InputError(
            f"The model file describes {spec['kind']} in a way that does not fit; it was changed."
        ) from error
    return value


def check_restored(model: CIPEstimator, columns: Any) -> None:
    """Refuse a model that was read back with weights, parameters or columns that no training leaves."""
    if any(part.is_floating_point() and not part.isfinite().all() for part in model.module_.state_dict().values()):
        raise InputError("The weights of the model hold NaN or infinity, which predict nothing; train the model anew.")
    # As they are checked before a training.
    model._settings(seed=0)
    needed = {*model.encoding_.names, *model.roles_.used}
    if not isinstance(columns, list) or len({*columns}) != len(columns) or not needed <= {*columns}:
        raise InputError(
            f"The model file lists the columns {columns!r}, which are not those of its roles; it was changed."
        )


def _check_column(value: Any) -> None:
    """Raise a TypeError where what was read of a column is of another kind."""
    if isinstance(value, NumberColumn):
        right = all(isinstance(end, int | float) and isfinite(end) for end in (value.low, value.high, value.median))
    elif isinstance(value, CategoryColumn):
        right = len(value.levels) > 0 and all(isinstance(level, str) for level in value.levels)
    else:
        right = True
    if not right:
        raise TypeError(value.name)
