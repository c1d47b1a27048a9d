"""Every synthetic study from end to end, on a few rows: what it writes, not what it finds."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from ciplearn import CIPRegressor
from ciplearn.datasets import first_synthetic
from ciplearn.estimators.preparation import Prepared
from ciplearn.penalties import HSCIC
from reproduction import registry
from reproduction.cases import Case
from reproduction.in_batch import InBatchHSCIC
from reproduction.methods import METHODS
from reproduction.page import assemble
from reproduction.runner import reproduce

SMALL = {"rows": 150, "epochs": 1, "seeds": 1, "points": 6, "interventions": 4, "batch_size": 64}
MORE = {
    "fig2-right": {"gammas": (0.001, 1.0), "baseline_epochs": 1},
    "fig3": {"gammas": (0.0, 1.0), "sizes": (2,)},
    "heuristics": {"copies": 1},
    "veitch": {},
}


def small(name):
    (study,) = registry.find(name)
    quick = study.presets["quick"]
    if name == "runtime":
        figure = replace(quick.figure, **SMALL, gammas=(0.0, 1.0))
        settings = replace(quick, rows=60, batch_size=30, epochs=1, figure=figure)
    else:
        settings = replace(quick, **SMALL, **MORE.get(name, {"gammas": (0.0, 1.0)}))
    return replace(study, presets={"quick": settings})


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("name", registry.SYNTHETIC)
def test_study_writes_everything(name, out):
    result = reproduce(small(name), "quick", out, device="cpu")
    assert_complete(result, out / name)


def assert_complete(result, folder):
    assert json.loads((folder / "result.json").read_text()) == result
    assert result["claims"]
    assert all(isinstance(claim["holds"], bool) and claim["statistic"] for claim in result["claims"])
    assert {claim["method"] for claim in result["claims"]} - {""} == set(METHODS)
    assert all(comparison["rows"] for comparison in result["comparisons"])
    assert all(len(pd.read_csv(folder / table)) for table in result["tables"])
    picture = (folder / result["figure"]).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 200_000


def test_page_holds_all_of_them(out):
    for name in registry.SYNTHETIC:  # those that another test has already run are there
        reproduce(small(name), "quick", out, device="cpu")
    page = out / "index.md"
    assert assemble(out, page) == len(registry.SYNTHETIC)
    text = page.read_text()
    assert all(f"({name}/figure.png)" in text for name in registry.SYNTHETIC)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["fig2-left", "fig2-right", "fig3", "runtime", "veitch", "heuristics"])
def test_study_runs_on_a_device(name, tmp_path):
    result = reproduce(small(name), "quick", tmp_path, device="cuda", n_jobs=2)
    assert_complete(result, tmp_path / name)


def test_the_papers_penalty_on_each_batch_is_what_a_frontier_judges_by():
    """As on a device, where all networks of a frontier are one stack; a CPU takes another way to the same penalty."""
    case = Case.draw(first_synthetic(), rows=150, seed=0)
    X, y = case.train[case.inputs], case.train["Y"]
    model = CIPRegressor(
        independence=case.independence(), inputs=case.inputs, epochs=1, batch_size=60, penalty=InBatchHSCIC.paper()
    )
    prepared = Prepared.of(model, X, y)
    (one,) = prepared.stacked([(1.0, 0)])
    rows, said = (X - X.min()) / (X.max() - X.min()), (one.predict(X) - y.min()) / (y.max() - y.min())
    parts = (said, rows[["A", "L"]].to_numpy(), rows[["Z"]].to_numpy())
    known = HSCIC.paper()(*(torch.tensor(np.asarray(part)) for part in parts))
    assert one.penalty_value(X, penalty=prepared.judge(X)) == pytest.approx(float(known), rel=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_recorded_steps_with_the_papers_penalty_equal_steps_on_the_cpu():
    case = Case.draw(first_synthetic(), rows=300, seed=0)
    X, y = case.train[case.inputs], case.train["Y"]
    trained = []
    for device in ("cpu", "cuda"):
        model = CIPRegressor(
            independence=case.independence(),
            inputs=case.inputs,
            epochs=5,
            batch_size=60,
            penalty=InBatchHSCIC.paper(),
            device=device,
        )
        trained.append([one.predict(X) for one in Prepared.of(model, X, y).stacked([(0.0, 1), (10.0, 2)])])
    for on_cpu, on_gpu in zip(*trained, strict=True):
        np.testing.assert_allclose(on_gpu, on_cpu, atol=1e-3)
