"""
A boosted model repaired
========================

You have a model that you trust and that follows sex. `ciplearn.repair` changes it as little as possible: no training,
one call, and the same predictor for a woman and for the man she would have been.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ciplearn import datasets, repair

world = datasets.applicants()
people, new = world.sample(3000, random_state=0), world.sample(2000, random_state=1)
read = ["sex", "age", "region", "training", "hours"]
trees = HistGradientBoostingRegressor(max_iter=80, random_state=0).fit(people[read], people["income"])

# %%
# The repair estimates from the table what sex does to training and hours, imagines each row with the other sex, and
# mixes what the model says of both.

repaired = repair(trees, people, graph=world.graph, outcome="income", protected="sex", random_state=0)
print(repaired)

# %%
# These people are made up, so the truth is known: the same women, had they been men.

women = new[new["sex"] == "f"].reset_index(drop=True)
men = world.counterfactual(women, {"sex": ["m"] * len(women)})
for name, model in {"as trained": trees, "repaired": repaired}.items():
    moved = np.mean(model.predict(men[read]) - model.predict(women[read]))
    explained = 1 - np.mean((model.predict(new[read]) - new["income"]) ** 2) / new["income"].var()
    print(f"{name}: moves by {abs(moved):.1f} thousand, explains {explained:.0%} of income")

# %%
# Ten of them, a line each. What is lost is the part of income that sex brings about.

figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
lines = np.arange(10)
for panel, (title, model) in zip(panels, {"as trained": trees, "repaired": repaired}.items(), strict=True):
    here, there = model.predict(women.loc[lines, read]), model.predict(men.loc[lines, read])
    panel.hlines(lines, here, there, color="#8a8f98", lw=2)
    panel.scatter(here, lines, color="#1b7ab8", s=70, zorder=3, label="as she is")
    panel.scatter(there, lines, color="#c8553d", s=26, zorder=4, label="had she been a man")
    panel.set(title=title, xlabel="predicted income, thousands a year", yticks=[], xlim=(20, 72))
panels[0].set_ylabel("ten applicants")
figure.legend(*panels[0].get_legend_handles_labels(), ncols=2, frameon=False, loc="outside upper center")
