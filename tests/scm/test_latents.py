import pytest

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm.fit import plan_latents


def test_a_bidirected_edge_becomes_a_latent_root():
    plan = plan_latents(CausalGraph.from_edges("A -> Y", bidirected=[("A", "Y")]), ())
    assert plan.learned == {"U(A,Y)": ("A", "Y")}
    assert plan.graph.bidirected == ()


def test_a_single_child_latent_is_kept_if_it_is_named():
    graph = CausalGraph.from_edges("H -> M, A -> M", latent=["H"])
    assert plan_latents(graph, ()).absorbed == {"H": "M"}
    assert plan_latents(graph, ("H",)).learned == {"H": ("M",)}


def test_latent_nodes_with_parents_and_crossed_latent_nodes_are_refused():
    with pytest.raises(InputError, match="H is latent and has the parent A"):
        plan_latents(CausalGraph.from_edges("A -> H, H -> X, H -> Y", latent=["H"]), ())
    crossed = CausalGraph.from_edges("H -> X, H -> Y, K -> Y, K -> Z", latent=["H", "K"])
    with pytest.raises(InputError, match="Y has two latent parents"):
        plan_latents(crossed, ())


def test_roots_that_bidirected_edges_join_need_no_latent_node():
    graph = CausalGraph.from_edges("A -> Y, B -> Y", nodes=["A", "B", "C", "Y"], bidirected=[("A", "B"), ("A", "C")])
    plan = plan_latents(graph, ())
    assert plan.together == (("A", "B", "C"),)
    assert plan.learned == {}
    assert set(plan.graph.nodes) == {"A", "B", "C", "Y"}


def test_bidirected_edges_that_meet_share_one_latent_root():
    graph = CausalGraph.from_edges("A -> Y, B -> Y", bidirected=[("A", "Y"), ("A", "B")])
    plan = plan_latents(graph, ())
    assert plan.learned == {"U(A,B,Y)": ("A", "B", "Y")}
    assert plan.together == ()
