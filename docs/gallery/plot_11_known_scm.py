"""
A causal model that you know
============================

Write one equation per node, and ask what each row would have been. Arrows lead from what was to what would have been.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from ciplearn import CausalGraph, StructuralCausalModel

scm = StructuralCausalModel(
    CausalGraph.from_edges("S -> A, S -> L, A -> L"),
    equations={
        "S": lambda p, u: u,
        "A": lambda p, u: np.sin(p["S"]) + u,
        "L": lambda p, u: 0.5 * p["A"] ** 2 + p["S"] + 0.5 * u,
    },
    noise={"S": norm(), "A": norm(), "L": norm()},
)
rows = scm.sample(60, random_state=0)
there = scm.counterfactual(rows, {"A": rows["A"] + 1})
print(there.head(3))

# %%
# S stays, since A does not act on it. L follows A, and keeps its own noise.

figure, panel = plt.subplots(figsize=(6, 4.2))
panel.quiver(
    rows["A"], rows["L"], there["A"] - rows["A"], there["L"] - rows["L"], rows["S"],
    angles="xy", scale_units="xy", scale=1, width=0.004, cmap="viridis",
)  # fmt: skip
points = panel.scatter(rows["A"], rows["L"], c=rows["S"], s=18, cmap="viridis")
figure.colorbar(points, label="S")
panel.set(xlabel="A", ylabel="L", title="had A been larger by 1")
panel.autoscale_view()
figure.tight_layout()
