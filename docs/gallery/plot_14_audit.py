"""
Reading an audit
================

Any predictor can be audited. This one is a boosted tree of scikit-learn that was never shown sex or age.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ciplearn import audit, datasets

world = datasets.applicants()
people, new = world.sample(1500, random_state=0), world.sample(500, random_state=1)
columns = ["training", "hours"]
trees = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(people[columns], people["income"])

found = audit(
    trees,
    world.graph,
    new,
    outcome="income",
    protected=["sex", "age"],
    inputs=columns,
    n_points=200,
    n_interventions=60,
)  # fmt: skip
print(found)

# %%
# Five numbers to read: how much is explained (R²); VCF, zero for an invariant predictor; the typical difference √(2
# VCF) in thousands per year; VCF over the variance of the predictions, which shrinking cannot buy; and the share of
# imagined rows that lie where there are no data.

vcf = found.vcf
print(f"typical difference {np.sqrt(2 * vcf.value):.1f} thousand; relative {vcf.relative:.2f}")

# %%
# Whom does it concern most? One dot per person.

rows = new.loc[vcf.per_row.index]
figure, panel = plt.subplots(figsize=(7, 3.6))
dots = panel.scatter(rows["hours"], np.sqrt(2 * vcf.per_row["vcf"]), c=rows["training"], s=14)
figure.colorbar(dots, label="years of training")
panel.set(xlabel="hours per week", ylabel="typical difference, thousands")
figure.tight_layout()
