"""
Bounds where nothing is identified
==================================

Two bits, X → Y, and a table of four probabilities. Would someone with X = 1 and Y = 1 have had Y = 0, had X been 0?
The table does not say, but it says between which values the answer lies.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ciplearn import CausalGraph, counterfactual_bounds

graph = CausalGraph.from_edges("X -> Y")
without, strengths = 0.3, np.linspace(0.3, 0.95, 8)  # P(Y = 1) at X = 0, and at X = 1
lows, highs = [], []
for with_it in strengths:
    law = {(0, 0): 1 - without, (0, 1): without, (1, 0): 1 - with_it, (1, 1): with_it}
    probabilities = pd.Series(law).rename_axis(["X", "Y"]) / 2
    found = counterfactual_bounds(graph, probabilities, event={"Y": 0}, do={"X": 0}, given={"X": 1, "Y": 1})
    lows.append(found.lower)
    highs.append(found.upper)
print(found)

# %%
# The stronger the effect, the narrower the bounds. No data can narrow them further.

figure, panel = plt.subplots(figsize=(6.5, 3.6))
panel.fill_between(strengths, lows, highs, alpha=0.25, color="#1b7ab8")
panel.plot(strengths, lows, color="#1b7ab8")
panel.plot(strengths, highs, color="#1b7ab8")
panel.set(
    xlabel="P(Y = 1 | X = 1), with P(Y = 1 | X = 0) = 0.3",
    ylabel="P(Y = 0 had X been 0 | X = 1, Y = 1)",
    ylim=(0, 1.02),
)
figure.tight_layout()
