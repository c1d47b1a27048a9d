import json
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, fit_scm
from ciplearn._core.errors import GraphError, InputError
from ciplearn.doubt import hidden_confounding, how_wrong, mechanism_sensitivity

GRAPH = CausalGraph.from_edges("S -> A, S -> L, A -> L")
RHO = 0.5


def confounded(n=3000, rho=RHO):
    """L = S + A + U_L with corr(U_A, U_L) = ρ; S is a common cause that is seen."""
    draw = np.random.default_rng(0)
    s, u, v = draw.normal(size=(3, n))
    a = s + u
    return pd.DataFrame({"S": s, "A": a, "L": s + a + rho * u + (1 - rho**2) ** 0.5 * v})


def through(frame):
    return frame["L"]


@pytest.fixture(scope="module")
def found():
    small = {"n_points": 80, "n_interventions": 60}
    return hidden_confounding(through, GRAPH, confounded(), "A", rho=[-0.5, 0.0, 0.5], inputs=["L"], **small)


def test_the_true_correlation_gives_the_true_vcf(found):
    vcf = found.table.set_index("rho")["vcf"]
    # One unit of A moves L by 1, or as regression has it by 1 + ρ; Var A = 2.
    assert vcf[0.5] == pytest.approx(2, rel=0.15)
    assert vcf[0.0] == pytest.approx(2 * 1.5**2, rel=0.15)
    assert vcf[-0.5] > vcf[0.0]


def test_the_crossing_lies_between_the_values_around_it(found):
    vcf = found.table.set_index("rho")["vcf"]
    threshold = ((vcf[0.0] ** 0.5 + vcf[0.5] ** 0.5) / 2) ** 2
    assert found.crossing(threshold) == {"L": pytest.approx(0.25)}
    # Between ρ = 0 and ρ = 1/2 the effect of A falls from 3/2 to 1, and VCF is twice its square.
    assert found.crossing(2 * 1.25**2)["L"] == pytest.approx(0.25, abs=0.06)
    assert np.isnan(found.crossing(100.0)["L"])
    with pytest.raises(InputError, match="measure must be"):
        found.crossing(1.0, "mse")
    with pytest.raises(InputError, match="threshold must not be negative"):
        found.crossing(-1.0)


def test_an_observed_cause_says_what_is_much(found):
    # As regression has it, L = S / 2 + 3 A / 2 + V with Var V = 3/4. Without S the noise of A is A itself, of variance
    # 2, and that of L is S / 2 + V, of variance 1.
    assert list(found.benchmarks["covariate"]) == ["S"]
    assert found.benchmarks["rho"][0] == pytest.approx(0.5 / 2**0.5, abs=0.05)
    assert "S would correlate the noises of A and L" in str(found)


def test_the_result_is_json_and_a_picture(found):
    mpl.use("Agg")
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["protected"] == "A"
    axes = found.plot()
    assert axes.get_ylabel() == "VCF"
    mpl.pyplot.close(axes.figure)


def test_two_labels_have_a_noise_and_three_have_none():
    table = confounded(300)
    two = table.assign(A=np.where(table["A"] > 0, "u", "v"))
    found = hidden_confounding(through, GRAPH, two, "A", rho=[0.0, 0.3], inputs=["L"], n_points=20, n_interventions=10)
    assert found.table["vcf"].notna().all()
    three = table.assign(A=pd.cut(table["A"], 3, labels=list("abc")).astype(str))
    with pytest.raises(InputError, match="A has 3 labels"):
        hidden_confounding(through, GRAPH, three, "A", rho=[0.3])


@pytest.mark.parametrize("rho", [1, -1.0, 2, float("nan")])
def test_correlations_of_one_or_more_are_refused(rho):
    with pytest.raises(InputError, match=r"strictly between -1 and 1|must be finite"):
        hidden_confounding(through, GRAPH, confounded(100), "A", rho=[rho])


def test_nodes_that_move_the_model_most_are_asked_about_first_and_the_others_named():
    table = confounded(200).assign(K=lambda frame: frame["A"] + frame["S"])
    graph = CausalGraph.from_edges("S -> A, S -> K, A -> K, A -> L, S -> L")
    found = hidden_confounding(
        through, graph, table, "A", rho=[0.0], inputs=["L"], n_points=20, n_interventions=10, limit=1
    )
    assert list(found.table["node"].unique()) == ["L"]
    assert found.late == ("K",)
    assert "K was not asked about" in str(found)


def test_graphs_with_hidden_causes_and_odd_nodes_are_refused():
    hidden = CausalGraph(directed=[*GRAPH.directed, ("S", "U")], latent=["U"])
    with pytest.raises(GraphError, match="U is latent and has causes"):
        hidden_confounding(through, hidden, confounded(100), "A")
    with pytest.raises(InputError, match="S must be another node of numbers with parents"):
        hidden_confounding(through, GRAPH, confounded(100), "A", nodes=["S"])


def test_a_vector_of_common_causes_counts_as_its_columns_do():
    draw = np.random.default_rng(0)
    s = draw.normal(size=(400, 2))
    a = s @ [1.0, 0.5] + draw.normal(size=400)
    table = pd.DataFrame({"S[0]": s[:, 0], "S[1]": s[:, 1], "A": a, "L": s @ [1.0, -1.0] + a + draw.normal(size=400)})
    apart = CausalGraph.from_edges("P -> A, Q -> A, P -> L, Q -> L, A -> L")
    asked = {"protected": "A", "rho": [-0.3, 0.3], "inputs": ["L"], "n_points": 40, "n_interventions": 30}
    together = hidden_confounding(through, GRAPH, table, **asked)
    each = hidden_confounding(through, apart, table.rename(columns={"S[0]": "P", "S[1]": "Q"}), **asked)
    np.testing.assert_allclose(together.table["vcf"], each.table["vcf"], rtol=0.05)
    assert list(together.benchmarks["covariate"]) == ["S"]
    # What S does to A, (1, 0.5), and to L, (1, -1), have the product 0.5 where the spreads are 1.5 and 1.7.
    assert together.benchmarks["rho"][0] == pytest.approx(0.5 / (2.25**0.5 * 3**0.5), abs=0.1)


@pytest.mark.parametrize(("protected", "nodes"), [("S", None), ("A", ["S"])])
def test_a_vector_has_no_one_correlation_and_the_other_checks_go_on(protected, nodes):
    table = confounded(100)
    table = table.drop(columns="S").assign(**{"S[0]": table["S"], "S[1]": table["S"] ** 2, "Y": table["L"]})
    graph = CausalGraph.from_edges("S -> L, A -> L, A -> S, L -> Y")
    with pytest.raises(InputError, match="S is a vector of 2 columns"):
        hidden_confounding(through, graph, table, protected, nodes)
    verdict = graph.criterion(outcome="Y", protected=["S"])
    answers = how_wrong(through, verdict, table, inputs=["L"], limit=1, n_points=10, n_interventions=10)
    said = [str(answer) for answer in answers.values()]
    assert len(said) > 2
    assert sum("S is a vector of 2 columns" in sentence for sentence in said) == 1


def test_mechanisms_that_fit_as_well_give_a_range():
    table = confounded(400, rho=0.0)
    scm = fit_scm(GRAPH, table)
    found = mechanism_sensitivity(through, scm, table, ["A"], inputs=["L"], n_points=40, n_interventions=20)
    assert found.table["mechanism"][0] == "as chosen"
    assert len(found.table) == 1 + len(scm.variants("L"))
    low, high = found.interval
    assert low <= found.table["vcf"][0] <= high
    assert f"{low:.3g}" in str(found)


def test_the_sign_of_a_correlation_does_not_hang_on_the_order_of_the_rows():
    table = confounded(600).assign(A=lambda t: np.where(t["A"] > 0, "m", "f")).sort_values("A", ignore_index=True)
    small = {"rho": [-0.4, 0.4], "inputs": ["L"], "n_points": 40, "n_interventions": 20}
    one, other = (
        hidden_confounding(through, GRAPH, rows, "A", **small).table["vcf"].to_numpy()
        for rows in (table, table.iloc[::-1].reset_index(drop=True))
    )
    assert abs(one[0] - one[1]) > 3 * np.abs(one - other).max()


def test_what_an_observed_cause_is_worth_does_not_hang_on_the_unit_of_the_noise():
    draw = np.random.default_rng(0)
    z, u, v = draw.normal(size=(3, 2000))
    a = 0.5 * z + u
    factor = np.exp(0.2 * z + 0.3 * a + v)
    found = {
        scale: hidden_confounding(
            lambda f: f["B"],
            CausalGraph.from_edges("Z -> A, Z -> B, A -> B"),
            pd.DataFrame({"Z": z, "A": a, "B": scale * factor}),
            "A",
            rho=[0.0],
            inputs=["B"],
            n_points=20,
            n_interventions=10,
        )
        .benchmarks["rho"]
        .iloc[0]
        for scale in (1.0, 100.0)
    }
    # Straight from the equation of log B: what Z does joins the noise.
    true = np.corrcoef(a, 0.2 * z + v)[0, 1]
    assert found[1.0] == pytest.approx(found[100.0], abs=0.02)
    assert found[1.0] == pytest.approx(true, abs=0.05)


def test_amounts_stay_positive_and_no_hidden_cause_is_the_model_as_it_is():
    draw = np.random.default_rng(0)
    z, u, v = draw.normal(size=(3, 800))
    a = 0.5 * z + u
    table = pd.DataFrame({"Z": z, "A": a, "B": 1000 * np.exp(0.5 * z + a + v)})
    graph = CausalGraph.from_edges("Z -> A, Z -> B, A -> B")
    seen = []

    def model(frame):
        seen.append(frame["B"].min())
        return np.log(frame["B"])

    asked = {"inputs": ["B"], "n_points": 100, "n_interventions": 40, "random_state": 0}
    found = hidden_confounding(model, graph, table, "A", rho=[-0.5, 0.0, 0.5], **asked).table.set_index("rho")["vcf"]
    assert min(seen) > 0
    assert found[0.0] == pytest.approx(a.var(), rel=0.15)


def test_a_node_is_fitted_once_for_all_correlations(monkeypatch):
    module, fitted = sys.modules["ciplearn.doubt.hidden_confounding"], []
    table = confounded(200)
    like = fit_scm(GRAPH, table, random_state=0)
    monkeypatch.setattr(module, "fit_scm", lambda *call, **more: fitted.append(call) or fit_scm(*call, **more))
    small = {"n_points": 20, "n_interventions": 10, "inputs": ["L"]}
    hidden_confounding(through, GRAPH, table, "A", rho=[-0.5, 0.0, 0.5], like=like, **small)
    # The model of all nodes, the node as it is, and the node with each of two correlations.
    assert len(fitted) == 4
