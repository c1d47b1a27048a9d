"""Kernels, penalties and encodings as JSON-ready data, and back; only kinds that are listed here are ever made."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ciplearn import kernels, penalties
from ciplearn._core.columns import CategoryColumn, NumberColumn, TableEncoding
from ciplearn._core.errors import InputError

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
        return kind(*arguments["parts"]) if "parts" in arguments else kind(**arguments)
    except TypeError as error:
        raise InputError(
            f"The model file describes {spec['kind']} in a way that does not fit; it was changed."
        ) from error
