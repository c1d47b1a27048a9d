"""Tables that stream take every route: rows are imagined block by block, and the line is trained from files."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ciplearn import CIPRegressor, variance_of_counterfactuals
from ciplearn._core.workers import OneProcess
from ciplearn.estimators.networks import LineNetwork, Ramps
from ciplearn.estimators.streaming import fit_stream, prepare_stream
from ciplearn.learning.invariance import Worst
from ciplearn.sources import TableFiles
from tests.estimators.test_counterfactual_route import process, quick

FEW = {"epochs": 8, "batch_size": 64, "learning_rate": 1e-2, "random_state": 0}


def files(place, table, count=3):
    """The rows in files, lowest Z first: no file is like another."""
    table = table.sort_values("Z")
    size = len(table) // count
    for number in range(count):
        table.iloc[number * size : (number + 1) * size].to_csv(place / f"{number}.csv", index=False)
    return table[: count * size]


@pytest.mark.parametrize("law", [stats.norm(), stats.bernoulli(0.4)], ids=["number", "two values"])
def test_imagined_rows_are_those_of_the_causal_model(tmp_path, law):
    scm = process(law)
    table = files(tmp_path, scm.sample(600, random_state=0))
    (tmp_path / "encoded").mkdir()
    model = quick(scm)
    source = TableFiles.matching(tmp_path / "*.csv")
    prepared = prepare_stream(model, source, None, OneProcess(), tmp_path / "encoded")
    batches = [batch for _, batch in prepared.rows.batches(prepared.rows.plan(600, torch.Generator()))]
    low, high = ({c.name: getattr(c, end) for c in model.encoding_.columns} for end in ("low", "high"))
    for batch in batches:
        own = _decoded(batch.inputs[0].numpy(), model, low, high)
        for world in range(batch.imagined.shape[1]):
            other = _decoded(batch.imagined[:, world].numpy(), model, low, high)
            # L moves with A and keeps its noise; Z does not descend from A.
            np.testing.assert_allclose(other["Z"], own["Z"], atol=1e-4)
            np.testing.assert_allclose(other["L"] - other["A"], own["L"] - own["A"], atol=1e-4)
        drawn = [_decoded(batch.imagined[:, w].numpy(), model, low, high)["A"] for w in range(batch.imagined.shape[1])]
        assert np.mean(drawn) == pytest.approx(0.5 if law.dist.name == "bernoulli" else table["A"].mean(), abs=0.15)
    if law.dist.name == "bernoulli":
        shares = dict(zip((0.0, 1.0), (table["A"] == 0.0, table["A"] == 1.0), strict=True))
        values = [round(float(np.mean(one))) for one in drawn]
        found = dict(zip(values, prepared.invariance.weights.tolist(), strict=True))
        assert found == pytest.approx({value: float(share.mean()) for value, share in shares.items()})


def _decoded(features, model, low, high):
    """Encoded numbers, back on the scale of the table."""
    return {name: features[:, model.encoding_.places([name])[0]] * (high[name] - low[name]) + low[name] for name in low}


def test_the_penalty_of_all_batches_is_that_of_the_rows_in_memory(tmp_path):
    scm = process(stats.bernoulli(0.4))
    table = files(tmp_path, scm.sample(600, random_state=0))
    (tmp_path / "encoded").mkdir()
    memory = quick(scm, epochs=1).fit(table[["A", "L", "Z"]], table["Y"])
    model = quick(scm)
    prepared = prepare_stream(model, TableFiles.matching(tmp_path / "*.csv"), None, OneProcess(), tmp_path / "encoded")
    # The files hold fewer digits than the frame.
    np.testing.assert_allclose(model.encoding_.columns[0].low, memory.encoding_.columns[0].low, atol=1e-6)
    total = n = 0.0
    for index, batch in prepared.rows.batches(prepared.rows.plan(64, torch.Generator())):
        more = prepared.invariance.imagined_inputs(index, batch)
        own, others = (memory.module_(*inputs).detach() for inputs in (batch.inputs, more))
        total += len(batch) * float(prepared.invariance.penalty(own, others, index, batch))
        n += len(batch)
    assert n == len(table)
    assert total / n == pytest.approx(memory.penalty_value(table[["A", "L", "Z"]]), rel=1e-4)


def test_a_fit_on_files_is_as_invariant_as_one_in_memory(tmp_path):
    scm = process()
    table = files(tmp_path, scm.sample(1200, random_state=0))
    fresh = scm.sample(500, random_state=1)
    streamed = quick(scm, **FEW).fit(tmp_path)
    memory = quick(scm, **FEW).fit(table[["A", "L", "Z"]], table["Y"])
    free = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], gamma=0.0, **FEW).fit(tmp_path)
    assert streamed.gamma_scale_ == pytest.approx(memory.gamma_scale_, rel=0.2)
    errors = [1 - one.score(fresh[["A", "L", "Z"]], fresh["Y"]) for one in (streamed, memory)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    models = {"streamed": streamed, "memory": memory, "free": free}
    vcf = variance_of_counterfactuals(models, scm, fresh, ["A"], 100, 20, random_state=0, inputs=["A", "L", "Z"])
    assert vcf["streamed"].value < 0.1 * vcf["free"].value
    again = quick(scm, **FEW).fit(tmp_path)
    np.testing.assert_array_equal(again.predict(fresh), streamed.predict(fresh))


def test_of_several_models_the_worst_counts(tmp_path):
    one, other = process(), process(slope=2.0)
    files(tmp_path, one.sample(300, random_state=0))
    (tmp_path / "encoded").mkdir()
    model = quick(one, early_stopping=True).set_params(counterfactuals=[one, other])
    prepared = prepare_stream(model, TableFiles.matching(tmp_path / "*.csv"), None, OneProcess(), tmp_path / "encoded")
    assert isinstance(prepared.invariance, Worst)
    assert prepared.rows.layout.worlds == 8
    assert prepared.splits[0].validation.rows.imagined.shape[1:] == (8, 3)
    trained = prepared.trained(1.0, epochs=1)
    assert np.isfinite(trained.history_[0]["penalty"])
    assert np.isfinite(trained.history_[0]["validation"])


def test_columns_that_only_the_causal_model_knows_are_read_and_may_have_gaps(tmp_path):
    scm = process()
    table = scm.sample(300, random_state=0)
    files(tmp_path, table)
    model = quick(scm, epochs=1).set_params(inputs=["L"], context=[])
    assert model.fit(tmp_path).encoding_.names == ("L",)
    assert model.predict(table[["L"]]).shape == (300,)


def test_the_line_from_files_keeps_its_share(tmp_path):
    scm = process()
    files(tmp_path, scm.sample(900, random_state=0))
    fresh = scm.sample(400, random_state=1)
    settings = {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "gamma": 0.0, **FEW}
    source = TableFiles.matching(tmp_path / "*.csv")
    line = fit_stream(CIPRegressor(**settings), source, None, OneProcess(), share=0.25)
    free = CIPRegressor(**settings).fit(tmp_path)
    assert isinstance(line.module_, LineNetwork)
    assert (line.route_, line.share_) == ("line", 0.25)
    vcf = variance_of_counterfactuals(
        {"line": line, "free": free}, scm, fresh, ["A"], 100, 20, random_state=0, inputs=["A", "L", "Z"]
    )
    assert vcf["line"].value == pytest.approx(0.25 * vcf["free"].value, rel=1e-4)
    strict = fit_stream(CIPRegressor(**settings), source, None, OneProcess(), share=0.0)
    swapped = fresh.assign(A=fresh["A"] + 1, L=0.0)
    np.testing.assert_allclose(strict.predict(swapped), strict.predict(fresh), atol=1e-6)


def test_pieces_of_a_range_are_read_off_rows_of_all_files(tmp_path):
    scm = process()
    table = files(tmp_path, scm.sample(900, random_state=0))
    settings = {"graph": scm.graph, "outcome": "Y", "protected": ["A"], "gamma": 0.0, "epochs": 1}
    model = CIPRegressor(**settings).fit(tmp_path)
    wanted = Ramps.of(torch.from_numpy(model.encoding_.features(pd.DataFrame(table))))
    for name in ("source", "start", "length"):
        torch.testing.assert_close(getattr(model.module_.ramps, name), getattr(wanted, name), rtol=0, atol=1e-5)
    assert len(wanted) > 6
