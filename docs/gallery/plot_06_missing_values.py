"""
Missing values
==============

Missing values are refused unless you say what to do. ``"drop"`` leaves out rows that miss a value; ``"impute"`` fills
numbers with the median and makes "missing" a category of its own. The more is missing, the more the choice matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from ciplearn import CIPRegressor, datasets
from ciplearn.errors import InputError

world = datasets.applicants()
people, new = world.sample(1500, random_state=0), world.sample(500, random_state=1)
roles = {"graph": world.graph, "outcome": "income", "protected": ["sex", "age"], "epochs": 30, "random_state": 0}

holes = people.copy()
holes.loc[holes.index[:10], "training"] = np.nan
try:
    CIPRegressor(**roles, gamma=1).fit(holes.drop(columns="income"), holes["income"])
except InputError as refused:
    print(refused)

# %%
# Both ways, with a growing share of cells missing at random in three columns:

shares, scores = (0.0, 0.1, 0.2, 0.4), {"drop": [], "impute": []}
rng = np.random.default_rng(0)
for share in shares:
    table = people.copy()
    for column in ("training", "hours", "region"):
        table.loc[rng.random(len(table)) < share, column] = np.nan
    for way, found in scores.items():
        model = CIPRegressor(**roles, gamma=0.3, missing=way).fit(table.drop(columns="income"), table["income"])
        found.append(model.score(new.drop(columns="income"), new["income"]))

figure, panel = plt.subplots(figsize=(6, 3.2))
for way, found in scores.items():
    panel.plot(shares, found, "o-", label=f'missing="{way}"')
panel.set(xlabel="share of cells missing in each of three columns", ylabel="R² on complete new rows")
panel.legend(frameon=False)
figure.tight_layout()

# %%
# Filled columns tell less of sex and age, so that the same gamma costs less. Compare predictors at an equal VCF before
# you
# conclude that imputing is better.
