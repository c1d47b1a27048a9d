"""
Bought by shrinking
===================

A predictor that says less has a smaller VCF, and takes the same decisions. Relative VCF and flips at an equal rate
tell the difference.
"""

import matplotlib.pyplot as plt
import pandas as pd

from ciplearn import CIPRegressor, datasets, fit_scm, variance_of_counterfactuals

world = datasets.applicants()
people, new = world.sample(1200, random_state=0), world.sample(400, random_state=1)
X, y = people.drop(columns="income"), people["income"]
roles = {"graph": world.graph, "outcome": "income", "protected": ["sex", "age"], "epochs": 40, "random_state": 0}
usual = CIPRegressor(**roles, gamma=0).fit(X, y)
trained = CIPRegressor(**roles, gamma=1, counterfactuals=fit_scm(world.graph, people)).fit(X, y)

centre = y.mean()
models = {
    "as usual": usual,
    "shrunk to a third": lambda frame: centre + (usual.predict(frame) - centre) / 3,
    "trained, gamma 1": trained,
}
found = variance_of_counterfactuals(
    models, world, new, ["sex", "age"], n_points=200, n_interventions=80, threshold=centre, rate=0.5
)

# %%
# The threshold is moved so that every model decides for half of the people.

table = pd.DataFrame(
    {
        name: {"VCF": vcf.value, "relative VCF": vcf.relative, "flips at an equal rate": vcf.flips_at_equal_rate.value}
        for name, vcf in found.items()
    }
)
print(table.round(3))

figure, axes = plt.subplots(1, 3, figsize=(8, 3.6))
for panel, (measure, values) in zip(axes, table.iterrows(), strict=True):
    panel.bar(values.index, values, color=["#8a8f98", "#d9a441", "#1b7ab8"])
    panel.set_title(measure)
    panel.tick_params(axis="x", labelrotation=20)
figure.tight_layout()
