"""What a stop of a walk is measured by."""

from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel
from ciplearn.workbench.measures import Judge


class Echo:
    """Says what X is."""

    def predict(self, frame):
        assert list(frame.columns) == ["A", "X"]
        return frame["X"].to_numpy()


def test_an_outcome_that_acts_on_an_input_is_known_where_noise_is_told_and_hidden_from_the_model():
    scm = StructuralCausalModel(
        CausalGraph.from_edges("A -> X, Y -> X"),
        equations={"A": lambda p, u: u, "Y": lambda p, u: u, "X": lambda p, u: p["A"] + p["Y"] + u},
        noise={"A": norm(), "Y": norm(), "X": norm(0, 0.1)},
    )
    rows = scm.sample(100, random_state=0)[["A", "X", "Y"]]
    vcf = Judge(rows, "Y", ("A",), scm, None, 0)._vcf(Echo())
    assert 0.7 < vcf.value < 1.4, "A moves X by its own variance"
