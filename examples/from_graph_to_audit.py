"""From a graph to a verdict, a predictor and an audit.

Run: python examples/from_graph_to_audit.py
"""

import torch

from ciplearn import CausalGraph, CIPRegressor, audit, datasets

torch.set_num_threads(1)

graph = CausalGraph.from_dagitty("dag { Z -> A -> L -> Y ; Z -> {L Y} ; A -> Y }")
print(graph.criterion(outcome="Y", protected=["A"]))

scm = datasets.first_synthetic()  # stands in for the world; with data alone, audit estimates a model from the graph
train, test = scm.sample(2000, random_state=0), scm.sample(1000, random_state=1)

for gamma in (0.0, 1.0):
    model = CIPRegressor(graph=graph, outcome="Y", protected=["A"], gamma=gamma, epochs=30, random_state=0)
    model.fit(train[["Z", "A", "L"]], train["Y"])
    print(f"\ngamma = {gamma:g}")
    print(audit(model, scm, test, n_points=200, n_interventions=100))
