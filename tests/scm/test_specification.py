import math

import numpy as np
import pytest

from ciplearn.scm.kinds import Categories, Scalar
from ciplearn.scm.specification import NodeSample, explained, label_gain, likelihood_gain


def sample(kind, values):
    return NodeSample("V", kind, (), {"V": np.asarray(values)}, {"V": kind})


def test_share_explained_is_one_without_and_zero_with_all_that_varies():
    held_out = sample(Scalar(), [1.0, 2.0, 3.0])
    assert explained(held_out, np.zeros(3)).value == 1
    assert explained(held_out, np.array([-1.0, 0.0, 1.0])).value == 0
    assert explained(held_out, np.array([-0.5, 0.0, 0.5])).value == pytest.approx(0.75)


def test_gain_of_labels_is_over_their_smoothed_frequencies():
    kind = Categories(["a", "b"])
    held_out = sample(kind, np.array(["a", "a", "b"], dtype=object))
    frequencies = np.array([2.5, 2.5, 1.5]) / 4
    assert label_gain(kind, held_out, np.log(frequencies)).value == pytest.approx(0)
    assert label_gain(kind, held_out, np.zeros(3)).value == pytest.approx(-np.log(frequencies).mean())


def test_what_is_unknown_has_no_score():
    assert math.isnan(explained(sample(Scalar(), [1.0, 2.0]), None).value)
    assert math.isnan(explained(sample(Scalar(), [2.0, 2.0]), np.zeros(2)).value)
    assert math.isnan(likelihood_gain(None, np.zeros(2)).value)
