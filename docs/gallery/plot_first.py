"""
A graph and its verdict
=======================

Draw what causes what, and ask which independence makes a predictor counterfactually invariant.
"""

# sphinx_gallery_thumbnail_path = "images/frontier.png"

from ciplearn import CausalGraph

graph = CausalGraph.from_edges("Z -> A, A -> L, L -> Y, Z -> L, Z -> Y, A -> Y")
graph.criterion(outcome="Y", protected=["A"])
