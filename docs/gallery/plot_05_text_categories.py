"""
A column of labels
==================

Columns of text hold labels: one network input per level, and in the penalty a kernel that asks whether two levels
are equal. Here the region someone comes from is protected, and acts on the job.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ciplearn import CausalGraph, CIPClassifier, paired_effects
from ciplearn.scm import fit_scm

rng = np.random.default_rng(0)
n = 1500
origin = rng.choice(["north", "south", "abroad"], n, p=[0.4, 0.4, 0.2])
chances = {"north": [0.2, 0.3, 0.5], "south": [0.3, 0.4, 0.3], "abroad": [0.6, 0.3, 0.1]}
job = np.array([rng.choice(["cleaning", "nursing", "office"], p=chances[place]) for place in origin])
hours = 36 + 3 * rng.normal(size=n)
score = (job == "office") * 1.5 + (job == "nursing") * 0.5 + 0.2 * (hours - 36) - 0.7 + 0.4 * (origin == "north")
granted = np.where(score + rng.logistic(size=n) > 0, "yes", "no")
X = pd.DataFrame({"origin": origin, "job": job, "hours": hours})
graph = CausalGraph.from_edges("origin -> job, origin -> granted, job -> granted, hours -> granted")

# %%
# Words stay words. A level that training has not seen is named in a warning and predicted from the other columns.

roles = {"graph": graph, "outcome": "granted", "protected": ["origin"], "epochs": 40, "random_state": 0}
models = {f"gamma = {gamma}": CIPClassifier(**roles, gamma=gamma).fit(X, granted) for gamma in (0, 3)}
scm = fit_scm(graph, X.assign(granted=granted))
pairs = paired_effects(models, scm, X, protected=["origin"], n_draws=20).table

# %%
# The probability of a loan for the same people, had they come from elsewhere:

figure, panel = plt.subplots(figsize=(7, 2.8))
for (name, rows), colour in zip(pairs.groupby("model", sort=False), ("#8a8f98", "#1b7ab8"), strict=True):
    places = np.arange(len(rows))
    panel.hlines(places, rows["effect_low"], rows["effect_high"], color=colour)
    panel.scatter(rows["effect"], places, color=colour, label=name, zorder=3)
labels = [f"{pair.first.split('= ')[1]} → {pair.second.split('= ')[1]}" for pair in rows.itertuples()]
panel.set_yticks(places, labels)
panel.axvline(0, color="black", lw=0.8)
panel.set_xlabel("mean change of the probability of a loan")
panel.legend(frameon=False)
figure.tight_layout()
