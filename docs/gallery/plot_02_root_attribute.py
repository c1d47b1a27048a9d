"""
A root attribute: keeping what sex did not cause
================================================

Sex has no causes in most graphs. Then the independence route can only end at a constant, and the counterfactual route
keeps a person's own part.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ciplearn import CausalGraph, CIPRegressor, fit_scm

rng = np.random.default_rng(0)
sex, talent = rng.choice(["f", "m"], size=800), rng.normal(size=800)
skill = talent + 1.5 * (sex == "m")
pay = skill + 0.5 * (sex == "m") + 0.3 * rng.normal(size=800)
X = pd.DataFrame({"sex": sex, "skill": skill})
graph = CausalGraph.from_edges("sex -> skill, sex -> pay, skill -> pay")

# %%
# Talent is in no column. A model of skill gives it back: what is left of skill when sex has been taken out.

roles = {"graph": graph, "outcome": "pay", "protected": ["sex"], "epochs": 60, "random_state": 0}
scm = fit_scm(graph, X.assign(pay=pay))
models = {
    "trained as usual": CIPRegressor(**roles, gamma=0),
    "independence, gamma 10": CIPRegressor(**roles, gamma=10),
    "counterfactual, gamma 10": CIPRegressor(**roles, gamma=10, counterfactuals=scm),
}

figure, axes = plt.subplots(1, 3, figsize=(8, 3.6), sharey=True)
for panel, (name, model) in zip(axes, models.items(), strict=True):
    answer = model.fit(X, pay).predict(X)
    for group, colour in {"f": "#c8553d", "m": "#1b7ab8"}.items():
        here = sex == group
        panel.scatter(talent[here], answer[here], s=6, alpha=0.5, color=colour, label=group)
    correlation = np.corrcoef(talent, answer)[0, 1]
    panel.set_title(f"{name}\ncorrelation with talent {correlation:.2f}", fontsize="medium")
    panel.set_xlabel("talent, which nobody sees")
axes[0].set_ylabel("predicted pay")
axes[0].legend(frameon=False)
figure.tight_layout()
