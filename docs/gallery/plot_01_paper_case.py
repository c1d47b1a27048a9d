"""
The paper's case
================

A is a number with a cause Z, and moves the outcome directly and through L. What would four predictors have said, had
A been different? One line per person: flat is invariant.
"""

import matplotlib.pyplot as plt
import numpy as np

from ciplearn import CIPRegressor, datasets

scm = datasets.first_synthetic()
train, people = scm.sample(1500, random_state=0), scm.sample(6, random_state=1)
X, y = train[["Z", "A", "L"]], train["Y"]
scm.graph

# %%
# The verdict names the independence that a penalty enforces. Gamma is its weight.

verdict = scm.graph.criterion(outcome="Y", protected=["A"])
print(verdict.headline())
print(verdict.independence)

# %%
# The same six people under values of A from -2 to 4, imagined by the true model:

values = np.linspace(-2, 4, 40)
figure, axes = plt.subplots(1, 4, figsize=(8, 3.6), sharey=True)
for panel, gamma in zip(axes, (0, 0.3, 1, 10), strict=True):
    model = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], gamma=gamma, epochs=60, random_state=0)
    model.fit(X, y)
    for i in range(len(people)):
        rows = people.iloc[np.full(len(values), i)].reset_index(drop=True)
        panel.plot(values, model.predict(scm.counterfactual(rows, {"A": values})))
    panel.set(title=f"gamma = {gamma}", xlabel="A, had it been ...")
axes[0].set_ylabel("prediction")
figure.tight_layout()
