import numpy as np
import pytest
from sklearn.base import clone

from ciplearn.scm.smooth_ridge import SmoothRidge


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("n", [300, 1500])
def test_predictions_equal_those_of_the_pipeline_they_were_folded_from(n, outputs):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    y = y if outputs is None else np.column_stack([y, -y])
    model = SmoothRidge().fit(x, y)
    same = model._pipeline(model.width_, 2, n).fit(x, y)
    fresh = generator.normal(size=(50, 2))
    np.testing.assert_allclose(model.predict(fresh), same.predict(fresh), atol=1e-6)
    assert model.predict(fresh).shape == y[:50].shape


def test_a_line_is_continued_where_there_is_no_data():
    x = np.linspace(-1, 1, 200)[:, None]
    model = SmoothRidge().fit(x, 3 * x[:, 0])
    assert model.predict(np.array([[4.0]]))[0] == pytest.approx(12, rel=0.05)


def test_it_is_a_scikit_learn_estimator():
    assert clone(SmoothRidge(n_components=7)).get_params()["n_components"] == 7
