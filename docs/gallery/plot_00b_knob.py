"""
A knob turned
=============

A repaired model has a knob, its strength: 0 is the model as it was, infinity says the same in every world. Turning it
costs nothing, so that a limit can be named and the smallest change that meets it is taken.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ciplearn import datasets, repair

world = datasets.applicants()
people, new = world.sample(3000, random_state=0), world.sample(1000, random_state=1)
read = ["sex", "age", "region", "training", "hours"]
trees = HistGradientBoostingRegressor(max_iter=80, random_state=0).fit(people[read], people["income"])
repaired = repair(trees, people, graph=world.graph, outcome="income", protected="sex", random_state=0)

# %%
# A limit in the unit of income: had they been of the other sex, people's predictions may move by 3 thousand on average.

limited = repaired.at(max_effect=3)
print(f"strength {limited.strength:.2f}")

# %%
# `along` asks the model about each world once, and answers for every strength.

women = new[new["sex"] == "f"].reset_index(drop=True)
men = world.counterfactual(women, {"sex": ["m"] * len(women)})
strengths = np.geomspace(0.02, 200, 40)
here, there, all_new = (repaired.along(frame, strengths)[:, :, 0] for frame in (women, men, new))
effect = np.mean(there - here, axis=0)
explained = 1 - np.mean((all_new - new["income"].to_numpy()[:, None]) ** 2, axis=0) / new["income"].var()

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for person, colour in zip((0, 3, 5), ("#1b7ab8", "#3d8a5f", "#9a6b1f"), strict=True):
    left.plot(strengths, here[person], color=colour, lw=2, label="as she is" if person == 0 else None)
    left.plot(strengths, there[person], color=colour, lw=2, ls=":", label="had she been a man" if person == 0 else None)
left.axvline(limited.strength, color="#c8553d", lw=1)
left.set(xscale="log", xlabel="strength", ylabel="predicted income, thousands", title="three applicants")
left.legend(frameon=False)

right.plot(effect, 100 * explained, color="#1b7ab8", lw=2)
chosen = np.interp(limited.strength, strengths, effect), 100 * np.interp(limited.strength, strengths, explained)
right.scatter(*chosen, s=90, facecolors="none", edgecolors="#c8553d", linewidths=2, zorder=3)
right.annotate("at most 3 thousand", chosen, (12, -14), textcoords="offset points", color="#c8553d")
right.set(xlabel="what sex moves, thousands", ylabel="% of income explained", title="what it costs")
