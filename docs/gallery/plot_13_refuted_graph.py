"""
A graph that is refuted
=======================

Every missing arrow is a claim about the table. Here one graph forgets that the region acts on income.
"""

import matplotlib.pyplot as plt

from ciplearn import CausalGraph, datasets

world = datasets.applicants()
people = world.sample(400, random_state=0)
wrong = CausalGraph.from_edges(
    "region -> age, region -> training, sex -> {training hours income}, age -> {training hours income},"
    "training -> income, hours -> income"
)
caught = wrong.falsify(people, random_state=0)
print(caught)
wrong

# %%
# Each dot is one independence that the graph implies. Left of the line it is refuted, with Holm's correction for their
# number. The right graph is not refuted, which is no proof.

figure, axes = plt.subplots(2, 1, figsize=(8, 3.8), sharex=True)
checks = {"region acts on income, forgotten": caught, "as it is": world.graph.falsify(people, random_state=0)}
for panel, (name, found) in zip(axes, checks.items(), strict=True):
    tests = found.tests.sort_values("p_adjusted")
    colours = ["#c8553d" if p < 0.05 else "#1b7ab8" for p in tests["p_adjusted"]]
    panel.scatter(tests["p_adjusted"].clip(0.001), [str(statement) for statement in tests["statement"]], color=colours)
    panel.axvline(0.05, color="black", lw=0.8, ls="--")
    panel.set(title=name, xscale="log")
    panel.grid(axis="y", alpha=0.3)
    panel.margins(y=0.2)
    panel.invert_yaxis()
axes[1].set_xlabel("adjusted p-value")
figure.tight_layout()
