"""Searches and frontiers: bad calls are refused in one sentence, and unseen classes count as what they are."""

import multiprocessing
import os

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ciplearn import CIPClassifier, CIPRegressor, Frontier, GammaSearch, frontier
from ciplearn._core.errors import InputError
from ciplearn.estimators.criteria import Judged, loss

MODEL = CIPRegressor(protected=["A"], epochs=1, random_state=0)

SEARCHES = {
    "no model": (lambda X, y: GammaSearch(None).fit(X, y), "got NoneType"),
    "a model of another kind": (lambda X, y: GammaSearch(LinearRegression()).fit(X, y), "got LinearRegression"),
    "trials as text": (lambda X, y: GammaSearch(MODEL, max_trials="a").fit(X, y), "max_trials must be a whole number"),
    "no table": (lambda X, y: GammaSearch(MODEL).fit(None, y), "cannot be split"),
    "few targets": (lambda X, y: GammaSearch(MODEL).fit(X, y[:5]), "X has 600 rows and y has 5"),
    "few weights": (lambda X, y: GammaSearch(MODEL).fit(X, y, sample_weight=[1, 2]), "one weight per row"),
    "share of nothing": (lambda X, y: GammaSearch(MODEL, validation_fraction=0).fit(X, y), "must be above zero"),
    "share of all": (lambda X, y: GammaSearch(MODEL, validation_fraction=1).fit(X, y), "must be below 1"),
    "seed as text": (lambda X, y: GammaSearch(MODEL, random_state="a").fit(X, y), "random_state must be"),
    "frontier of nothing": (lambda X, y: frontier(None, X, y), "got NoneType"),
    "one gamma": (lambda X, y: frontier(MODEL, X, y, gammas=5), "gammas must be several values"),
    "one seed": (lambda X, y: frontier(MODEL, X, y, seeds=None), "seeds must be several values"),
    "a seed twice": (lambda X, y: frontier(MODEL, X, y, seeds=[0, 1, 0]), "seeds must differ .* got 0 twice"),
    "a gamma twice": (lambda X, y: frontier(MODEL, X, y, gammas=[1, 1.0]), "gammas must differ .* got 1.0 twice"),
    "negative seed": (lambda X, y: frontier(MODEL, X, y, seeds=[-1]), "seed must be at least 0"),
    "broken seed": (lambda X, y: frontier(MODEL, X, y, seeds=[1.5]), "seed must be a whole number"),
    "no rows": (lambda X, y: frontier(MODEL, None, y), "cannot be split"),
    "few targets in a frontier": (lambda X, y: frontier(MODEL, X, y[:5]), "X has 600 rows and y has 5"),
    "share as text": (lambda X, y: frontier(MODEL, X, y, test_fraction="a"), "must be a number"),
    "test without a target": (lambda X, y: frontier(MODEL, X, y, test=(X,)), "must be a pair"),
    "test as a table": (lambda X, y: frontier(MODEL, X, y, test=X), "must be a pair"),
    "measures as a number": (lambda X, y: frontier(MODEL, X, y, measures=5), "measures must map names"),
    "file in no folder": (lambda X, y: frontier(MODEL, X, y, file="no/where.csv"), "a folder that exists"),
    "file that is a folder": (lambda X, y: frontier(MODEL, X, y, file="."), "cannot be the file of a frontier"),
    "file that is a number": (lambda X, y: frontier(MODEL, X, y, file=5), "must be a path"),
    "frontier from nothing": (lambda X, y: Frontier.from_csv("nothing.csv"), "holds no points"),
    "no processes": (lambda X, y: frontier(MODEL, X, y, n_jobs=0), "n_jobs must be a whole number other than 0"),
    "test of other rows": (lambda X, y: frontier(MODEL, X, y, test=(X, y[:5])), "X has 600 rows and y has 5"),
    "measure named like a column": (
        lambda X, y: frontier(MODEL, X, y, measures={"gamma": lambda model: 1.0}),
        "measures names 'gamma', which is a column of every frontier",
    ),
    "measure named like what is always measured": (
        lambda X, y: frontier(MODEL, X, y, measures={"loss": lambda model: 1.0}),
        "measures names 'loss'",
    ),
    "measure by an array": (lambda X, y: GammaSearch(MODEL, scoring=np.ones(3)).fit(X, y), "scoring must be one of"),
    "measure that is none": (lambda X, y: frontier(MODEL, X, y, measures={"a": 5}), "functions of a fitted model"),
}


@pytest.mark.parametrize("mistake", SEARCHES)
def test_mistake_gets_one_clear_sentence(mistake, X, y):
    call, words = SEARCHES[mistake]
    with pytest.raises(InputError, match=words) as refusal:
        call(X, y)
    assert "\n" not in str(refusal.value)


def test_pipe_and_device_are_no_file_of_a_sweep(X, y, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(InputError, match="cannot be the file of a frontier"):
            frontier(MODEL, X, y, gammas=[0.0], file=path)


def test_of_several_processes_on_one_file_one_writes_it_and_the_others_say_so(X, y, tmp_path):
    file, started = tmp_path / "sweep.csv", multiprocessing.get_context("fork").Barrier(3)

    def swept(said):
        started.wait(60)
        try:
            frontier(MODEL, X, y, gammas=[0.0, 0.5, 1.0], file=file, n_jobs=1)
            said.put("done")
        except InputError as refusal:
            said.put(str(refusal))

    said = multiprocessing.get_context("fork").Queue()
    runs = [multiprocessing.get_context("fork").Process(target=swept, args=(said,)) for _ in range(3)]
    for run in runs:
        run.start()
    answers = [said.get(timeout=120) for _ in runs]
    for run in runs:
        run.join(60)
    # One that comes after the end of another finds everything done.
    assert "done" in answers
    assert all(answer == "done" or "is written by another run" in answer for answer in answers)
    lines = file.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 4


def test_file_of_a_sweep_belongs_to_one_run_at_a_time(X, y, tmp_path):
    file = tmp_path / "sweep.csv"
    fitted = []

    def again(model):
        fitted.append(model)
        with pytest.raises(InputError, match=r"sweep.csv is written by another run at the moment; wait for its end"):
            frontier(MODEL, X, y, gammas=[0.0, 1.0], file=file)
        return 1.0

    frontier(MODEL, X, y, gammas=[0.0, 1.0], file=file, measures={"again": again}, n_jobs=1)
    assert len(fitted) == 2
    assert len(Frontier.from_csv(file).points) == 2
    with pytest.raises(InputError, match="got NoneType"):
        frontier(None, X, y, file=tmp_path / "never.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.csv"]


def test_class_that_training_has_not_seen_has_no_probability(X):
    labels = np.array(["b", "c"] * 300)
    model = CIPClassifier(epochs=1, random_state=0).fit(X, labels)
    known = loss(Judged.of(model, X[:10], labels[:10]))
    for strange in ("a", "bb", "d"):
        mixed = np.array([strange, *labels[1:10]])
        first = -np.log(model.predict_proba(X[:1])[0, 0])
        expected = known + (-np.log(1e-12) - first) / 10
        assert loss(Judged.of(model, X[:10], mixed)) == pytest.approx(expected)


def test_bytes_that_are_no_table_are_refused(tmp_path):
    (tmp_path / "bytes.csv").write_bytes(bytes(range(1, 256)))
    (tmp_path / "long.csv").write_text("[]" * 9999)
    for name in ("bytes.csv", "long.csv"):
        with pytest.raises(InputError, match="no table of a frontier") as said:
            Frontier.from_csv(tmp_path / name)
        assert len(str(said.value)) < 400
