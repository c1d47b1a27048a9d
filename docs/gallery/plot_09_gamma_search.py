"""
GammaSearch with a pipeline
===========================

You say how much may be lost, and the largest gamma that keeps to it is found. Steps of a scikit-learn pipeline may
come before, as long as they keep the names of the columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from ciplearn import CIPRegressor, GammaSearch, datasets

world = datasets.applicants()
people = world.sample(1000, random_state=0)
X, y = people.drop(columns="income"), people["income"]
X.loc[X.index[::7], "hours"] = np.nan

fill = make_column_transformer(
    (SimpleImputer(strategy="mean"), ["hours"]), remainder="passthrough", verbose_feature_names_out=False
)
model = CIPRegressor(graph=world.graph, outcome="income", protected=["sex", "age"], epochs=30, random_state=0)
search = GammaSearch(model, tolerance=0.2, cv=1, max_trials=8, random_state=0)
pipeline = make_pipeline(fill.set_output(transform="pandas"), search).fit(X, y)
print(f"gamma = {search.best_gamma_:.3g}; of R² = {search.explained_:.3g} at most a fifth may be lost")

# %%
# The search tries the ends, then halves the gap on a logarithmic scale. It judges by rows that do not train, and
# never sees a counterfactual.

table = search.frontier_.table.query("0 < gamma < 1000").sort_values("gamma")
figure, panel = plt.subplots(figsize=(7, 3.4))
panel.semilogx(table["gamma"], table["score"], "o-", color="#1b7ab8")
panel.axvline(search.best_gamma_, color="#c8553d", ls="--", label="chosen")
base = search.frontier_.table.query("gamma == 0")["score"].item()
panel.axhspan(0.8 * base, base, color="#3a8f5c", alpha=0.15, label="within the tolerance")
panel.set(xlabel="gamma", ylabel="R² on rows that judge")
panel.legend(frameon=False)
figure.tight_layout()
