import threading

from ciplearn import Frontier
from ciplearn.learning.frontier import Point, read_sweep


def test_frontier_read_back_from_its_table_is_equal(tmp_path):
    points = tuple(Point(gamma, seed, {"loss": gamma / 3}) for seed in (0, 1) for gamma in (3.0, 0.1))
    found = Frontier(points)
    found.to_csv(tmp_path / "frontier.csv")
    assert Frontier.from_csv(tmp_path / "frontier.csv") == found
    assert Frontier(points[:3]) != found


def test_file_that_another_run_makes_or_removes_meanwhile_is_read_all_the_same(tmp_path):
    file, over = tmp_path / "sweep.csv", threading.Event()

    def other_run():
        while not over.is_set():
            file.touch()
            file.unlink()

    other = threading.Thread(target=other_run)
    other.start()
    try:
        assert all(read_sweep(file).points == [] for _ in range(5000))
    finally:
        over.set()
        other.join()
