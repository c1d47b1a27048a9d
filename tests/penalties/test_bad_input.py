"""A user's mistake gets one sentence of the library's own."""

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn._core.errors import CiplearnError, InputError, InputTypeError
from ciplearn._core.tensors import same_device
from ciplearn.kernels import Categorical, Gaussian
from ciplearn.penalties import CIRCE, HSCIC, HSIC, MMD, ResidualHSCIC

N = 16
Y, R, S = torch.rand(N), torch.rand(N, 2), torch.rand(N, 1)


def prepared():
    return ResidualHSCIC(ridge=0.01).prepare(R, S)


MISTAKES = {
    "fewer rows in right": (lambda: HSCIC()(Y, R[:9], S), "16 and 9"),
    "fewer rows in given": (lambda: HSCIC()(Y, R, S[:9]), "16 and 9"),
    "rows and columns swapped": (lambda: HSCIC()(Y[None, :], R, S), "1 and 16"),
    "three dimensions": (lambda: HSCIC()(Y, R[:, :, None], S), r"\(16, 2, 1\)"),
    "no columns": (lambda: HSCIC()(Y, R[:, :0], S), "no columns"),
    "NaN in the prediction": (lambda: HSCIC()(Y.where(Y.min() < Y, torch.nan), R, S), "y_hat holds NaN"),
    "infinity in right": (
        lambda: HSCIC()(Y, R.where(R.min() < R, torch.inf), S),
        "right holds NaN or infinity in 1 of",
    ),
    "NaN in given": (lambda: HSCIC()(Y, R, S * torch.nan), "given holds NaN or infinity in 16 of 16 rows"),
    "one row": (lambda: HSCIC()(Y[:1], R[:1], S[:1]), "at least 2 rows, got 1"),
    "no row": (lambda: HSIC()(Y[:0], R[:0]), "at least 2 rows, got 0"),
    "integer prediction": (lambda: HSCIC()(torch.arange(N), R, S), "y_hat must hold floating-point"),
    "integer right": (lambda: HSCIC()(Y, torch.arange(N), S), "Categorical"),
    "integer given": (lambda: HSIC()(Y, torch.arange(N)), "Categorical"),
    "text": (lambda: HSCIC()(Y, ["a"] * N, S), "category codes"),
    "text beside a length scale": (lambda: HSIC()(Y, ["a", "b"] * 8), "category codes"),
    "text in chunks": (lambda: MMD().prepare_chunks([(["a", "b"] * 8, None)]), "category codes"),
    "missing label": (lambda: MMD()(Y, ["a", None] * 8), "right holds NaN or infinity in 8 of 16 rows"),
    "complex": (lambda: HSIC()(Y, R.to(torch.complex64)), "complex"),
    "right waits for a gradient": (lambda: HSCIC()(Y, R.clone().requires_grad_(), S), "right.detach()"),
    "given missing": (lambda: ResidualHSCIC()(Y, R), "given=None"),
    "given for HSIC": (lambda: HSIC()(Y, R, S), "leave it out"),
    "continuous groups": (lambda: MMD()(Y, R), "16 distinct values in 16 rows"),
    "rows beyond the end": (lambda: prepared()(Y[:3], rows=[0, 1, N]), "between 0 and 15, got 0 to 16"),
    "negative rows": (lambda: prepared()(Y[:3], rows=[-1, 1, 2]), "got -1 to 2"),
    "too few rows": (lambda: prepared()(Y[:3], rows=[0, 1]), r"shape \(3,\)"),
    "mask instead of rows": (lambda: prepared()(Y, rows=torch.ones(N, dtype=torch.bool)), "whole numbers"),
    "fractional rows": (lambda: prepared()(Y[:2], rows=torch.tensor([0.0, 1.0])), "whole numbers"),
    "rows twice": (lambda: prepared()(Y[:4], rows=[0, 1, 1, 0]), "at most once, got 2 different ones among 4"),
    "batch of one": (lambda: prepared()(Y[:1], rows=[0]), "at least 2 rows, got 1"),
    "slice instead of rows": (lambda: prepared()(Y[:5], rows=slice(0, 5)), "got slice"),
    "text instead of rows": (lambda: prepared()(Y[:5], rows="a"), "got str"),
    "sparse right": (lambda: HSCIC()(Y, R.to_sparse(), S), "right must be a plain tensor, got one that is sparse"),
    "prediction without values": (lambda: HSCIC()(Y.to("meta"), R, S), "y_hat must be a plain tensor"),
    "rows forgotten": (lambda: prepared()(Y[:5]), "pass rows="),
    "negative ridge": (lambda: HSCIC(ridge=-0.1), "ridge must not be negative, got -0.1"),
    "unknown ridge": (lambda: CIRCE(ridge="auto"), "'loo'"),
    "ridge of another type": (lambda: HSCIC(ridge=None), "ridge must be a number"),
    "ridge of several numbers": (lambda: HSCIC(ridge=np.zeros(0)), "ridge must be a number"),
    "NaN ridge": (lambda: HSCIC(ridge=float("nan")), "finite"),
    "negative length scale": (lambda: Gaussian(-1), "above zero, got -1"),
    "zero length scale": (lambda: Gaussian(0.0), "above zero"),
    "unknown length scale": (lambda: Gaussian("mean"), "'median'"),
    "kernel by name": (lambda: HSCIC(kernel="gaussian"), "kernel must be a kernel"),
    "features by number": (lambda: HSCIC(features=128), "Nystroem"),
    "negative row limit": (lambda: HSCIC(exact_rows=-1), "exact_rows must be at least 0"),
    "column out of range": (lambda: HSIC(right_kernel=Gaussian(0.1, columns=[5]))(Y, R), "reads column 5"),
    "one-way chunks": (lambda: HSIC().prepare_chunks((R, None) for _ in range(2)), "generator"),
    "no chunks": (lambda: HSIC().prepare_chunks([]), "at least 2 rows, got 0"),
    "mismatch of one": (lambda: Categorical(mismatch=1.0), "below 1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake):
    call, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert isinstance(caught.value, CiplearnError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_wrong_type_is_also_a_type_error():
    with pytest.raises(TypeError):
        HSCIC()(torch.arange(N), R, S)
    with pytest.raises(InputTypeError):
        HSCIC(kernel="gaussian")


def test_different_devices_are_named():
    with pytest.raises(InputError, match="y_hat is on cpu but right is on meta"):
        same_device(torch.device("cpu"), "y_hat", torch.device("meta"), "right")


@pytest.mark.gpu
def test_prediction_on_another_device_is_refused():
    with pytest.raises(InputError, match="on cuda:0 but the operator is on cpu"):
        prepared()(Y.cuda())
    with pytest.raises(InputError, match="on cuda:0 but right is on cpu"):
        HSCIC()(Y.cuda(), R, S)


def test_one_dimension_means_one_column():
    penalty = HSCIC(Gaussian(0.5), ridge=0.01)
    assert penalty(Y, R[:, 0], S[:, 0]) == penalty(Y[:, None], R[:, :1], S)


def test_arrays_and_frames_are_welcome():
    penalty = HSCIC(Gaussian(0.5), ridge=0.01)
    frame = pd.DataFrame({"a": R[:, 0].numpy(), "b": R[:, 1].numpy()})
    assert penalty(Y, frame, S.numpy()) == penalty(Y, R, S)


LABELS = ["u", "v", "v", "w"] * 4
CODES = torch.tensor([0, 1, 1, 2] * 4)


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pd.Categorical, lambda labels: pd.Series(labels).astype("category")]
)
def test_labels_are_taken_where_codes_are(kind):
    labels = kind(LABELS)
    assert MMD(Gaussian(0.5))(Y, labels) == MMD(Gaussian(0.5))(Y, CODES)
    assert MMD(Gaussian(0.5))(Y, CODES % 2, labels) == MMD(Gaussian(0.5))(Y, CODES % 2, CODES)
    assert MMD(Gaussian(0.5)).prepare(labels)(Y) == MMD(Gaussian(0.5)).prepare(CODES)(Y)
    for penalty in (HSIC(Gaussian(0.5), Categorical()), HSCIC(Gaussian(0.5), Categorical(), Gaussian(0.5))):
        given = () if isinstance(penalty, HSIC) else (S,)
        assert penalty(Y, labels, *given) == penalty(Y, CODES, *given)


def test_labels_may_stand_beside_numbers():
    table = pd.DataFrame({"label": LABELS, "number": [0.0, 1.0] * 8})
    codes = torch.stack([CODES.double(), torch.tensor([0.0, 1.0] * 8).double()], dim=1)
    assert MMD(Gaussian(0.5))(Y, table) == MMD(Gaussian(0.5))(Y, codes)
