"""Settings and networks that cannot work are refused in one sentence, before anything is silently wrong."""

import numpy as np
import pytest
import torch
from torch import nn

from ciplearn import CIPClassifier, CIPRegressor
from ciplearn._core.errors import InputError

QUICK = {"epochs": 2, "random_state": 0}

MISTAKES = {
    "width that is negative": ({"hidden": (-1,)}, "width in hidden must be at least 1"),
    "width zero": ({"hidden": (0,)}, "width in hidden must be at least 1"),
    "width as text": ({"hidden": "ab"}, "width in hidden must be a whole number"),
    "more weights than a machine holds": ({"hidden": (10**6, 10**6)}, "makes a network of 1.0e"),
    "widths as a number": ({"hidden": 5}, "sequence of widths"),
    "no device": ({"device": None}, "device must be"),
    "device without numbers": ({"device": "meta"}, "device must be"),
    "negative seed": ({"random_state": -1}, "random_state must be"),
    "seed as text": ({"random_state": "a"}, "random_state must be"),
    "share as text": ({"early_stopping": True, "validation_fraction": "a"}, "validation_fraction must be a number"),
    "share of everything": (
        {"early_stopping": True, "validation_fraction": 1.0},
        "validation_fraction must be below 1",
    ),
    "checkpoint that is no path": ({"checkpoint": 5}, "checkpoint must be a path"),
    "statement as text": ({"independence": "A"}, "must be an Independence"),
    "nothing to see": ({"inputs": []}, r"got inputs=\[\]"),
    "nothing to see beside a protected column": ({"inputs": [], "protected": ["A"]}, r"got inputs=\[\]"),
    "class instead of a network": ({"module": nn.Linear}, "function without arguments"),
    "network without weights": ({"module": nn.Identity()}, "no weights to train"),
    "frozen network": ({"module": nn.Linear(3, 1).requires_grad_(False)}, "no weights to train"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_gets_one_clear_sentence(mistake, X, y):
    settings, words = MISTAKES[mistake]
    with pytest.raises(InputError, match=words) as refusal:
        CIPRegressor(**QUICK | settings).fit(X, y)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("settings", [{}, {"protected": ["A"]}], ids=["no penalty", "a penalty"])
@pytest.mark.parametrize("n", [2, 3])
def test_too_few_rows_to_stop_by_are_refused_as_what_they_are(n, settings, X, y):
    with pytest.raises(InputError, match=f"holds out 2 of {n} rows, which leaves {n - 2} to train on"):
        CIPRegressor(**QUICK, early_stopping=True, **settings).fit(X[:n], y[:n])


class Answering(nn.Module):
    """A network whose answer is changed on the way out."""

    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Linear(3, 1), change

    def forward(self, inputs):
        return self.change(self.layer(inputs))


WRONG = {
    "no column": lambda out: out[:, 0],
    "two columns": lambda out: torch.cat([out, out], dim=1),
    "few rows": lambda out: out[:3],
    "a cube": lambda out: out[:, :, None],
    "one number": lambda out: out.mean(),
    "a pair": lambda out: (out, out),
    "nothing": lambda out: None,
    "whole numbers": lambda out: out.long(),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("mixed_precision", [False, True])
def test_network_with_another_output_is_refused(wrong, mixed_precision, X, y):
    network = Answering(WRONG[wrong])
    labels = (y > y.median()).astype(int)
    settings = QUICK | {"module": network, "mixed_precision": mixed_precision}
    for model, target in (
        (CIPRegressor(**settings), y),
        (CIPClassifier(**settings), labels),
        (CIPClassifier(**settings), np.arange(len(y)) % 3),
    ):
        if wrong == "whole numbers" and mixed_precision:
            continue  # become floating-point numbers, and then have no gradient
        with pytest.raises(InputError, match="The network must return"):
            model.fit(X, target)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([torch.ones(3, 1)], "3 entries for 600 rows"),
        ([np.ones((700, 1))], "700 entries for 600 rows"),
        ([5.0], "single number"),
        ([["a"] * 600], "cannot be used"),
        (torch.ones(600, 1), "must be a list"),
        (None, "must be a list"),
    ],
)
def test_tensors_that_do_not_fit_the_rows_are_refused_by_fit_and_predict(tensors, words, X, y):
    with pytest.raises(InputError, match=words):
        CIPRegressor(**QUICK, module=Beside()).fit(X, y, tensors=tensors)
    model = CIPRegressor(**QUICK, module=Beside()).fit(X, y, tensors=[np.ones((600, 1))])
    with pytest.raises(InputError, match=words):
        model.predict(X, tensors=tensors)


class Beside(nn.Module):
    """Takes one number beside the table."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, inputs, more):
        return self.layer(torch.cat([inputs, more], dim=1))
