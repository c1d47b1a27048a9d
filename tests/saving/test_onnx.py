import numpy as np
import pytest

from ciplearn import CIPClassifier, CIPRegressor, datasets, repair
from ciplearn._core.errors import InputError, InputTypeError, MissingDependencyError
from ciplearn.learners import LEARNERS, Network
from ciplearn.saving import export_onnx
from ciplearn.saving import onnx as onnx_export
from tests.estimators.mixed_table import mixed_table

runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")


def answers(path, model, X):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"inputs": model.encoding_.features(X)})[0]


@pytest.mark.filterwarnings("ignore")
def test_exported_networks_answer_as_the_models_do(tmp_path):
    X, signal = mixed_table()
    regressor = CIPRegressor(protected=["sex"], epochs=2, random_state=0).fit(X, signal)
    path = export_onnx(regressor, tmp_path / "regressor.onnx")
    np.testing.assert_allclose(answers(path, regressor, X)[:, 0], regressor.predict(X), rtol=1e-4, atol=1e-5)
    for cuts in ([0.5], [0.33, 0.67]):
        labels = np.digitize(signal, np.quantile(signal, cuts))
        classifier = CIPClassifier(protected=["sex"], epochs=2, random_state=0).fit(X, labels)
        path = export_onnx(classifier, tmp_path / "classifier.onnx")
        np.testing.assert_allclose(answers(path, classifier, X), classifier.predict_proba(X), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner_is_exported_for_any_number_of_rows(name, tmp_path):
    X, signal = mixed_table()
    known = {"network": {"epochs": 2}, "boosted": {"trees": 5}}
    model = LEARNERS[name](**known.get(name, {})).estimator("regression", random_state=0).fit(X, signal)
    path = export_onnx(model, tmp_path / "model.onnx")
    for rows in (X, X[:1]):
        np.testing.assert_allclose(answers(path, model, rows)[:, 0], model.predict(rows), rtol=1e-4, atol=1e-5)


def test_missing_extra_is_named(tmp_path, monkeypatch):
    X, signal = mixed_table()
    model = CIPRegressor(epochs=1, random_state=0).fit(X, signal)
    monkeypatch.setattr(onnx_export, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"ciplearn\[onnx\]"):
        export_onnx(model, tmp_path / "model.onnx")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["regression", pytest.param("classification", marks=pytest.mark.slow)])
def test_a_repaired_model_is_exported_by_what_it_teaches_a_network(task, tmp_path):
    world = datasets.applicants()
    people = world.sample(300, random_state=0)
    if task == "classification":
        people["income"] = np.where(people["income"] > people["income"].median(), "high", "low")
    learner = LEARNERS["linear"]().estimator(task, random_state=0)
    model = learner.fit(people.drop(columns="income"), people["income"])
    repaired = repair(model, people, scm=world, outcome="income", protected="sex", random_state=0)
    with pytest.raises(InputError, match=r"which an ONNX file cannot hold; export what it teaches .*distil"):
        export_onnx(repaired, tmp_path / "repaired.onnx")
    distilled = repaired.distil(Network(epochs=5).estimator(task, random_state=0))
    path = export_onnx(distilled, tmp_path / "distilled.onnx")
    expected = distilled.predict_proba(people) if task == "classification" else distilled.predict(people)[:, None]
    np.testing.assert_allclose(answers(path, distilled.model, people), expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_network_is_named(tmp_path):
    with pytest.raises(InputTypeError, match="or what was distilled into one"):
        export_onnx(len, tmp_path / "model.onnx")
