"""
Age as a number
===============

A protected column need not have groups. Here every applicant is imagined at every age from 22 to 68.
"""

import matplotlib.pyplot as plt
import numpy as np

from ciplearn import CIPRegressor, datasets, fit_scm

world = datasets.applicants()
people = world.sample(1500, random_state=0)
X, y = people.drop(columns="income"), people["income"]
roles = {"graph": world.graph, "outcome": "income", "protected": ["age"], "epochs": 60, "random_state": 0}

usual = CIPRegressor(**roles, gamma=0).fit(X, y)
blind = CIPRegressor(**{**roles, "inputs": ["region", "sex", "training", "hours"]}, gamma=0).fit(X, y)
model = CIPRegressor(**roles, gamma=3, counterfactuals=fit_scm(world.graph, people)).fit(X, y)

# %%
# "Age left out" is trained as usual without the column. Training and hours respond to age, so it moves all the same.

ages = np.linspace(22, 68, 30)
some = world.sample(40, random_state=3)
rows = some.loc[some.index.repeat(len(ages))].reset_index(drop=True)
imagined = world.counterfactual(rows, {"age": np.tile(ages, len(some))})

figure, axes = plt.subplots(1, 3, figsize=(8, 3.6), sharey=True)
predictors = {"trained as usual": usual, "age left out": blind, "counterfactual, gamma 3": model}
for panel, (name, predictor) in zip(axes, predictors.items(), strict=True):
    answers = predictor.predict(imagined).reshape(len(some), len(ages))
    panel.plot(ages, (answers - answers.mean(axis=1, keepdims=True)).T, color="#1b7ab8", alpha=0.35, lw=1)
    panel.set(title=name, xlabel="age, had it been ...")
axes[0].set_ylabel("change of the predicted income")
figure.tight_layout()
