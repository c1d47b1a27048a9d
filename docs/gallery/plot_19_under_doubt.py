"""
Training under doubt
====================

Rows cannot tell whether A acts on M or M on A. A predictor that is trained for the drawn graph alone is at the mercy of
that arrow. Trained against the worse of both graphs, it gives up accuracy and keeps its promise in either.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ciplearn import CausalGraph, CIPRegressor, FrontierDisplay, fit_scm, frontier, variance_of_counterfactuals

draw = np.random.default_rng(0)
a, z, noise, rest = draw.normal(size=(4, 600))
table = pd.DataFrame({"A": a, "Z": z, "M": a + noise})
table["Y"] = table["M"] + z + 0.3 * rest

# %%
# The drawn graph says that M acts on A. Its class leaves the arrow open, and has two members.

drawn = CausalGraph.from_edges("M -> A, M -> Y, Z -> Y")
possible = list(drawn.equivalence_class().members(by_parents_of="A"))
print([str(member) for member in possible])
models = [fit_scm(member, table) for member in possible]

# %%
# Both frontiers are measured in the same way: by the larger VCF of the two models.


def worst(model):
    """The largest VCF over the graphs that are possible."""
    return max(variance_of_counterfactuals(model, scm, table, ["A"], 100, 40).value for scm in models)


def swept(counterfactuals):
    """Train over gammas against one model, or against the worst of several."""
    model = CIPRegressor(
        outcome="Y", protected=["A"], counterfactuals=counterfactuals, hidden=(16,), epochs=80, learning_rate=0.02
    )
    rows = table.drop(columns="Y")
    return frontier(model, rows, table["Y"], gammas=[0.01, 0.1, 1.0, 10.0], measures={"vcf": worst})


one_graph = swept(fit_scm(drawn, table))
under_doubt = swept(models)
_, panel = plt.subplots(figsize=(7, 3.4), layout="constrained")
FrontierDisplay.from_frontier(one_graph, beside={"under doubt": under_doubt}).plot(panel)
panel.set_xlabel("largest VCF over the possible graphs")
