"""Kernels, penalties and networks go to JSON-ready data and back."""

import json
from dataclasses import is_dataclass

import pytest

from ciplearn import kernels, penalties
from ciplearn.saving.folder import from_spec, to_spec

PARTS = (kernels.Gaussian(0.3), kernels.Categorical())
NO_SETTINGS = {"Operator", "Setting", "StreamedOperator"}
KINDS = [
    (name, getattr(room, name))
    for room in (kernels, penalties)
    for name in room.__all__
    if is_dataclass(getattr(room, name)) and name not in NO_SETTINGS
]


@pytest.mark.parametrize(("name", "kind"), KINDS, ids=[name for name, _ in KINDS])
def test_every_public_kernel_and_penalty_can_be_saved(name, kind):
    value = kind(*(PARTS if name in ("Product", "Sum") else ()))
    assert from_spec(json.loads(json.dumps(to_spec(value)))) == value
