"""
Two protected columns and their crossings
=========================================

A predictor can treat women and men alike, and the young and the old, and still not young women. ``paired_effects``
looks at every pair of values, and at every crossing of two protected columns.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ciplearn import CausalGraph, fit_scm, paired_effects

rng = np.random.default_rng(0)
n = 2000
table = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.choice(["young", "middle", "old"], n)})
young_woman = (table["sex"] == "f") & (table["age"] == "young")
table["weeks"] = 48 - 8 * young_woman + rng.normal(0, 2, n)  # weeks worked per year
table["pay"] = table["weeks"] + rng.normal(0, 1, n)
graph = CausalGraph.from_edges("sex -> weeks, age -> weeks, weeks -> pay")

# %%
# A predictor that reads the weeks alone:

scm = fit_scm(graph, table)
pairs = paired_effects(lambda frame: frame["weeks"], scm, table, protected=["sex", "age"], inputs=["weeks"])
print(pairs.headline)

# %%
# Each cell: what changes for the same people, on average, if they are imagined at the right-hand crossing instead of
# as young women. Rows of the table hold both directions.

crossed = pairs.table[pairs.table["variable"].str.contains("×")]
effects = {}
for pair in crossed.itertuples():
    effects[pair.first, pair.second], effects[pair.second, pair.first] = pair.effect, -pair.effect
names = sorted({name for pair in effects for name in pair})
grid = [[effects.get((row, column), np.nan) for column in names] for row in names]

figure, panel = plt.subplots(figsize=(8, 3.6))
picture = panel.imshow(grid, cmap="RdBu_r", vmin=-8, vmax=8, aspect="auto")
panel.set_xticks(range(len(names)), names, rotation=20, ha="right")
panel.set_yticks(range(len(names)), names)
for i, line in enumerate(grid):
    for j, value in enumerate(line):
        if not np.isnan(value):
            said = f"{value:+.0f}" if abs(value) > 0.5 else "0"
            panel.text(j, i, said, ha="center", va="center", color="white" if abs(value) > 5 else "black")
panel.set_title("from (row) to (column): mean change in weeks")
figure.colorbar(picture, shrink=0.8)
figure.tight_layout()
