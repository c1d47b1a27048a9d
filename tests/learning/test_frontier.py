from ciplearn import Frontier
from ciplearn.learning.frontier import Point


def test_frontier_read_back_from_its_table_is_equal(tmp_path):
    points = tuple(Point(gamma, seed, {"loss": gamma / 3}) for seed in (0, 1) for gamma in (3.0, 0.1))
    found = Frontier(points)
    found.to_csv(tmp_path / "frontier.csv")
    assert Frontier.from_csv(tmp_path / "frontier.csv") == found
    assert Frontier(points[:3]) != found
