import json
import random
from itertools import product

import numpy as np
import pandas as pd
import pytest

from ciplearn import CausalGraph, counterfactual_bounds
from ciplearn._core.errors import GraphError, InputError
from tests.causal.oracle import random_graph
from tests.doubt.exact_models import NoiseModel, answer_by_response_functions, whole_laws


def _network_law(network):
    """Joint law of binary nodes from {node: (parents, probabilities of level 1 in binary order of the parents)}."""
    cells = {}
    for levels in product((0, 1), repeat=len(network)):
        value = dict(zip(network, levels, strict=True))
        cells[levels] = 1.0
        for node, (parents, ones) in network.items():
            one = ones[int("".join(str(value[parent]) for parent in parents) or "0", 2)]
            cells[levels] *= one if value[node] else 1 - one
    return pd.Series(cells).rename_axis(list(network))


# -------------------------------------------------------------------------------- published and closed-form bounds

# The synthetic network of Wu, Zhang and Wu [wu2019], probabilities to three digits.
WU = {
    "A": ([], [0.192]),
    "S": (["A"], [0.258, 0.322]),
    "N": (["A", "S"], [0.352, 0.762, 0.48, 0.889]),
    "M": (["A", "S"], [0.333, 0.156, 0.156, 0.836]),
    "Y": (
        ["A", "S", "N", "M"],
        [0.546, 0.408, 0.332, 0.381, 0.437, 0.453, 1.0, 0.619, 0.531, 0.442, 0.818, 0.442, 0.546, 0.546, 0.85, 0.592],
    ),
}  # fmt: skip


# a, m, the published interval, the published truth
WU_ROWS = [
    (0, 0, (0.1047, 0.3988), 0.3279),
    (0, 1, (0.1772, 0.4713), 0.4670),
    (1, 0, (-0.0819, 0.1475), -0.0377),
    (1, 1, (0.1449, 0.3743), 0.1448),
]


def _wu_bounds(network, a, m):
    """Bounds on P(Y had S been 1 | a, m, S = 0) − P(Y | a, m, S = 0)."""
    law = _network_law(network)
    graph = CausalGraph.from_edges([(parent, node) for node, (parents, _) in network.items() for parent in parents])
    found = counterfactual_bounds(graph, law, event={"Y": 1}, do={"S": 1}, given={"A": a, "M": m, "S": 0})
    seen = law.xs((a, 0, m), level=("A", "S", "M"))
    factual = seen.xs(1, level="Y").sum() / seen.sum()
    assert found.sharp
    return found.lower - factual, found.upper - factual


@pytest.mark.parametrize(("a", "m", "published", "truth"), WU_ROWS)
def test_bounds_of_the_published_network_are_no_wider_than_published(a, m, published, truth):
    lower, upper = _wu_bounds(WU, a, m)
    # Four printed digits: half a unit of the last.
    assert lower >= published[0] - 5e-5
    assert upper <= published[1] + 5e-5


@pytest.mark.parametrize(("a", "m", "published", "truth"), WU_ROWS)
def test_bounds_hold_the_published_truth_for_a_network_that_prints_alike(a, m, published, truth):
    """The truth is of the network before its probabilities were rounded to three digits.

    On the printed network it lies outside by 0.0004 in the first row and by 0.0001 in the last, where it is outside the
    published interval, too. Probabilities that print alike move the ends by more than that: from the printed network we
    go towards the truth, each probability by less than half a unit of its third digit, and are inside.
    """
    lower, upper = _wu_bounds(WU, a, m)
    if lower <= truth <= upper:
        return
    end, wanted = (0, -1) if truth < lower else (1, 1)
    step = 1e-5
    moved = {node: (parents, list(ones)) for node, (parents, ones) in WU.items()}
    for node, (parents, ones) in WU.items():
        for place, value in enumerate(ones):
            nudged = {**WU, node: (parents, [*ones[:place], value - step, *ones[place + 1 :]])}
            slope = ((lower, upper)[end] - _wu_bounds(nudged, a, m)[end]) / step
            moved[node][1][place] = float(np.clip(value + wanted * np.sign(slope) * 4.9e-4, 0, 1))
    assert {n: (p, [round(one, 3) for one in ones]) for n, (p, ones) in moved.items()} == {
        n: (list(p), list(ones)) for n, (p, ones) in WU.items()
    }
    lower, upper = _wu_bounds(moved, a, m)
    assert lower <= truth <= upper


def test_probability_of_necessity_has_its_known_bounds():
    rng = np.random.default_rng(0)
    graph = CausalGraph.from_edges("X -> Y")
    for _ in range(20):
        p, q0, q1 = rng.uniform(size=3)
        law = _network_law({"X": ([], [p]), "Y": (["X"], [q0, q1])})
        found = counterfactual_bounds(graph, law, {"Y": 0}, {"X": 0}, {"X": 1, "Y": 1})
        assert found.lower == pytest.approx(max(0.0, (q1 - q0) / q1), abs=1e-7)
        assert found.upper == pytest.approx(min(1.0, (1 - q0) / q1), abs=1e-7)
        assert found.sharp


def test_confounded_effect_has_the_bounds_without_assumptions():
    rng = np.random.default_rng(1)
    graph = CausalGraph.from_edges("X -> Y, X <-> Y")
    law = pd.Series(rng.dirichlet(np.ones(4)), index=pd.MultiIndex.from_product([(0, 1), (0, 1)], names=["X", "Y"]))
    found = counterfactual_bounds(graph, law, {"Y": 1}, {"X": 1})
    assert (found.lower, found.upper) == pytest.approx((law[1, 1], 1 - law[1, 0]), abs=1e-7)
    assert found.sharp


def test_instrument_gives_the_bounds_of_balke_and_pearl():
    graph = CausalGraph.from_edges("Z -> X -> Y, X <-> Y")
    models = (NoiseModel.at_random(graph, np.random.default_rng(seed), {}, states=4) for seed in range(60))
    laws = [law for law in (model.law() for model in models) if law.index.get_level_values("Z").nunique() == 2]
    assert len(laws) > 20
    for law in laws:
        law = law.reindex(pd.MultiIndex.from_product([(0, 1)] * 3, names=["X", "Y", "Z"]), fill_value=0.0)
        p = {(y, x, z): law[x, y, z] / law.xs(z, level="Z").sum() for x, y, z in product((0, 1), repeat=3)}
        # p[y, x, z] = P(Y = y, X = x | Z = z), as printed [balke1997] for P(Y = 1 had X been 0).
        lower = max(
            p[1, 0, 1],
            p[1, 0, 0],
            p[1, 0, 0] + p[1, 1, 0] - p[0, 0, 1] - p[1, 1, 1],
            p[0, 1, 0] + p[1, 0, 0] - p[0, 0, 1] - p[0, 1, 1],
        )
        upper = min(
            1 - p[0, 0, 1],
            1 - p[0, 0, 0],
            p[0, 1, 0] + p[1, 0, 0] + p[1, 0, 1] + p[1, 1, 1],
            p[1, 0, 0] + p[1, 1, 0] + p[0, 1, 1] + p[1, 0, 1],
        )
        found = counterfactual_bounds(graph, law, {"Y": 1}, {"X": 0})
        assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-7)


@pytest.mark.parametrize(
    ("edges", "latent", "formula"),
    [
        ("S -> X, S -> Y, X -> Y", (), lambda m: sum(m("S", s) * m("Y", 1, X=1, S=s) for s in (0, 1))),
        (
            "X -> M -> Y, U -> X, U -> Y",
            "U",
            lambda m: sum(m("M", k, X=1) * sum(m("X", x) * m("Y", 1, X=x, M=k) for x in (0, 1)) for k in (0, 1)),
        ),
    ],
)
def test_identified_effects_are_points(edges, latent, formula):
    graph = CausalGraph.from_edges(edges, latent=latent)
    model = NoiseModel.at_random(graph, np.random.default_rng(3), {}, states=4)
    law = model.law()

    def m(node, level, **given):
        seen = law.reset_index(name="p")
        for name, value in given.items():
            seen = seen[seen[name] == value]
        return seen.p[seen[node] == level].sum() / seen.p.sum()

    found = counterfactual_bounds(graph, law, {"Y": 1}, {"X": 1})
    assert found.lower == pytest.approx(formula(m), abs=1e-7)
    assert found.upper == pytest.approx(found.lower, abs=1e-7)
    assert found.sharp
    assert model.answer({"Y": 1}, {"X": 1}, {}) == pytest.approx(found.lower, abs=1e-7)


# -------------------------------------------------------------------------------- models in full


def _random_question(rng, graph, levels):
    level = lambda name: rng.randrange(levels.get(name, 2))  # noqa: E731
    names = rng.sample(list(graph.observed), len(graph.observed))
    done = names[: rng.choice((1, 1, 2))]
    # Mostly what an intervention changes: everything else is a point.
    moved = [name for name in names if name in graph.descendants(done) and name not in done]
    event = {name: level(name) for name in (moved or names)[: rng.choice((1, 1, 2))]}
    given = {name: level(name) for name in names if rng.random() < 0.6}
    return event, {name: level(name) for name in done}, given


def _answered(graph, law, event, do, given):
    """The bounds, or None where the question cannot be asked of these probabilities."""
    known = {name: set(law.index.get_level_values(name)) for name in graph.observed}
    if any(level not in known[name] for part in (event, do, given) for name, level in part.items()):
        return None
    try:
        return counterfactual_bounds(graph, law, event, do, given)
    except InputError as error:
        if "probability 0" in str(error) or "variables" in str(error):
            return None
        raise


def test_no_model_lies_outside_the_bounds_of_its_own_probabilities():
    rng, numbers = random.Random(41), np.random.default_rng(41)
    tried = {"point": 0, "one": 0, "several": 0, "loose": 0}
    while sum(tried.values()) < 250:
        graph = random_graph(rng, 4, smallest=3)
        if len(graph.observed) < 2 or len(graph.directed) < 2 or len(graph.nodes) + len(graph.bidirected) > 6:
            continue
        levels = {name: rng.choice((2, 2, 3)) for name in graph.nodes}
        model = NoiseModel.at_random(graph, numbers, levels)
        law = model.law()
        event, do, given = _random_question(rng, graph, levels)
        found, truth = _answered(graph, law, event, do, given), model.answer(event, do, given)
        if found is None or truth is None:
            continue
        assert found.lower - 1e-7 <= truth <= found.upper + 1e-7, (graph, event, do, given)
        assert 0 <= found.lower <= found.upper <= 1
        kind = "loose" if not found.sharp else ("point", "one", "several")[min(len(found.laws), 2)]
        tried[kind] += 1
    assert min(tried["point"], tried["one"]) > 50, tried
    assert min(tried["several"], tried["loose"]) > 0, tried


def test_a_model_with_the_same_probabilities_attains_each_end():
    rng, numbers = random.Random(42), np.random.default_rng(42)
    checked = 0
    while checked < 40:
        graph = random_graph(rng, 3, smallest=2)
        if len(graph.observed) < 2:
            continue
        law = NoiseModel.at_random(graph, numbers, {}).law()
        event, do, given = _random_question(rng, graph, {})
        found = _answered(graph, law, event, do, given)
        if found is None or not found.laws or not found.sharp:
            continue
        for end in ("lower", "upper"):
            joint, wanted = answer_by_response_functions(graph, whole_laws(graph, law, found, end), event, do, given)
            told = {key if isinstance(key, tuple) else (key,): p for key, p in law.items()}
            assert joint == pytest.approx({key: told.get(key, 0.0) for key in joint}, abs=1e-6)
            assert sum(joint.values()) == pytest.approx(1.0, abs=1e-6)
            evidence = sum(
                p for key, p in joint.items() if all(key[graph.observed.index(n)] == v for n, v in given.items())
            )
            assert wanted / evidence == pytest.approx(getattr(found, end), abs=1e-6), (graph, event, do, given)
        checked += 1


# -------------------------------------------------------------------------------- several open components


def test_product_of_two_open_laws_has_the_bounds_of_a_search_over_their_corners():
    graph = CausalGraph.from_edges("A -> M -> Y")
    rng = np.random.default_rng(5)
    for _ in range(10):
        p, m0, m1, y0, y1 = rng.uniform(0.05, 0.95, size=5)
        law = _network_law({"A": ([], [p]), "M": (["A"], [m0, m1]), "Y": (["M"], [y0, y1])})
        found = counterfactual_bounds(graph, law, {"Y": 1}, {"A": 1}, {"A": 0, "M": 0, "Y": 0})
        # Given M = Y = 0 at A = 0: the chance that M had been 1, times the chance that Y would then have been 1.
        corners = [
            (max(0.0, m1 - m0) / (1 - m0), min(m1, 1 - m0) / (1 - m0)),
            (max(0.0, y1 - y0) / (1 - y0), min(y1, 1 - y0) / (1 - y0)),
        ]
        values = [a * b for a, b in product(*corners)]
        assert set(found.laws) == {("M",), ("Y",)}
        assert (found.lower, found.upper) == pytest.approx((min(values), max(values)), abs=1e-6)
        assert found.sharp
        assert "attained by a model" in found.how


def test_responses_that_are_never_asked_about_together_need_no_joint_law():
    names = [f"c{number}" for number in range(6)]
    graph = CausalGraph.from_edges([("X", "Y"), *((name, "Y") for name in names)])
    rng = np.random.default_rng(9)
    rows = pd.DataFrame(rng.integers(0, 2, size=(20_000, 7)), columns=["X", *names])
    rows["Y"] = (rng.random(len(rows)) < 0.2 + 0.5 * rows["X"] * rows["c0"]).astype(int)
    found = counterfactual_bounds(graph, rows, {"Y": 1}, {"X": 1}, {"X": 0, "Y": 0})
    # One pair of responses for each of 64 backgrounds, instead of all 2^128 response functions.
    assert "256 variables for {Y}" in found.how
    lower = upper = whole = 0.0
    for _, cell in rows.groupby(names):
        none, one = (cell["Y"][cell["X"] == x].mean() for x in (0, 1))
        # Y depends on X within a background, X and the background are independent by the graph.
        share = len(cell) / len(rows)
        lower += share * max(0.0, one - none)
        upper += share * min(one, 1 - none)
        whole += share * (1 - none)
    # The graph says more than the sample: backgrounds are independent of each other, so shares are products.
    assert (found.lower, found.upper) == pytest.approx((lower / whole, upper / whole), abs=0.01)


def test_relaxation_is_named_where_several_causes_meet_in_one_component():
    graph = CausalGraph.from_edges("X -> Y, X <-> Y, Y <-> Z", nodes=["Z"])
    law = NoiseModel.at_random(graph, np.random.default_rng(2), {}).law()
    found = counterfactual_bounds(graph, law, {"Y": 1}, {"X": 1})
    assert found.upper - found.lower > 0.01
    assert not found.sharp
    assert "leaves out that they are independent" in found.how


def test_latent_node_with_parents_hands_them_on():
    hidden = CausalGraph.from_edges("X -> U -> Y, U -> Z", latent="U")
    told = CausalGraph.from_edges("X -> Y, X -> Z, Y <-> Z")
    law = NoiseModel.at_random(hidden, np.random.default_rng(6), {}).law()
    question = {"event": {"Y": 1, "Z": 0}, "do": {"X": 1}, "given": {"X": 0, "Y": 0}}
    one, other = (counterfactual_bounds(graph, law, **question) for graph in (hidden, told))
    assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper))
    assert one.upper - one.lower > 0.01


# -------------------------------------------------------------------------------- what goes in and out


def test_rows_and_their_probabilities_give_the_same_bounds_and_print_themselves():
    rng = np.random.default_rng(7)
    x = rng.choice(["low", "middle", "high"], size=400)
    rows = pd.DataFrame({"X": x, "Y": (rng.random(400) < np.where(x == "high", 0.8, 0.3)), "unused": 1.5})
    graph = CausalGraph.from_edges("X -> Y")
    question = {"event": {"Y": True}, "do": {"X": "high"}, "given": {"X": "low", "Y": False}}
    found = counterfactual_bounds(graph, rows, **question)
    law = rows.groupby(["Y", "X"]).size() / len(rows)
    assert counterfactual_bounds(graph, law, **question) == found
    assert str(found).startswith("P(Y = True had X been high | X = low, Y = False) lies in [")
    assert json.loads(json.dumps(found.to_dict()))["sharp"] is True
    frame = found.laws["Y",]
    assert frame[["lower", "upper"]].sum().tolist() == pytest.approx([1.0, 1.0])
    assert "Y where X = high" in frame.columns


def test_question_about_one_node_alone_is_a_point():
    law = pd.Series([0.25, 0.75], index=pd.Index([0, 1], name="Y"))
    graph = CausalGraph.from_edges([], nodes=["Y"])
    assert counterfactual_bounds(graph, law, {"Y": 1}, {}).lower == pytest.approx(0.75)
    assert counterfactual_bounds(graph, law, {"Y": 1}, {"Y": 1}, {"Y": 0}).upper == 1.0
    assert counterfactual_bounds(graph, law, {"Y": 1}, {"Y": 0}).upper == 0.0


LAW = pd.Series([0.2, 0.3, 0.5, 0.0], index=pd.MultiIndex.from_product([(0, 1), (0, 1)], names=["X", "Y"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": {"Yy": 1}}, "event names 'Yy', which is not in the graph; did you mean 'Y'"),
        ({"event": {}}, "event is empty"),
        ({"event": "Y"}, "event must be a mapping"),
        ({"do": {"X": 7}}, "do gives 'X' the level 7, which the probabilities do not have; its levels are 0, 1"),
        ({"given": {"X": 1, "Y": 1}}, "evidence X = 1, Y = 1 has probability 0"),
        (
            {"probabilities": LAW.rename_axis(["X", "Yy"])},
            "no index level for the observed node 'Y'; did you mean 'Yy'",
        ),
        ({"probabilities": LAW.rename_axis([None, "Y"])}, "index of probabilities has no names"),
        ({"probabilities": LAW * 2}, "add up to 2"),
        ({"probabilities": LAW - 0.1}, "smallest is -0.1"),
        ({"probabilities": pd.concat([LAW / 2, LAW / 2])}, "names a cell twice"),
        ({"probabilities": LAW.to_dict()}, "must be a pandas frame of rows or a Series"),
        ({"probabilities": pd.DataFrame({"X": [0, 1]})}, "no column for the observed node 'Y'"),
        ({"probabilities": pd.DataFrame({"X": [0, 1], "Y": [None, 1.0]})}, "'Y' is missing in 1 of 2 rows"),
        ({"probabilities": pd.DataFrame({"X": [], "Y": []})}, "no rows"),
    ],
)
def test_bad_questions_get_one_sentence(change, message):
    question = {"probabilities": LAW, "event": {"Y": 1}, "do": {"X": 1}} | change
    with pytest.raises((InputError, GraphError), match=message):
        counterfactual_bounds(CausalGraph.from_edges("X -> Y"), **question)


def test_edges_without_direction_are_refused():
    with pytest.raises(GraphError, match="needs a direction"):
        counterfactual_bounds(CausalGraph.from_dagitty("pdag { X -- Y }"), LAW, {"Y": 1}, {"X": 1})


def test_program_that_is_too_large_says_how_large():
    rng = np.random.default_rng(8)
    rows = pd.DataFrame(rng.integers(0, 4, size=(500, 3)), columns=["Z", "X", "Y"])
    graph = CausalGraph.from_edges("Z -> X -> Y, Z -> Y, X <-> Y")
    with pytest.raises(InputError, match=r"The program for \{X, Y\} has 1\.1e\+12 variables, more than 100000"):
        counterfactual_bounds(graph, rows, {"Y": 1}, {"X": 1})


def test_probabilities_that_no_model_with_the_graph_has_are_refused():
    # Z moves Y by far more than X follows Z, which an instrument cannot do.
    law = _network_law({"Z": ([], [0.5]), "X": (["Z"], [0.05, 0.05]), "Y": (["Z"], [0.02, 0.98])})
    graph = CausalGraph.from_edges("Z -> X -> Y, X <-> Y")
    with pytest.raises(InputError, match=r"No causal model with this graph has these probabilities: those of \{X, Y\}"):
        counterfactual_bounds(graph, law, {"Y": 1}, {"X": 1})
