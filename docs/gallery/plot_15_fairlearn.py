"""
The same table with fairlearn
=============================

`fairlearn <https://fairlearn.org>`_ asks for equal rates between groups, ciplearn for the same answer to the same
person. These are two questions, and a predictor can answer one well and the other badly. Here is one table under
both.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fairlearn.metrics import demographic_parity_difference
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from ciplearn import CausalGraph, CIPClassifier, datasets, fit_scm

world = datasets.applicants()
people, new = world.sample(1200, random_state=0), world.sample(800, random_state=1)
granted, granted_new = ((frame["income"] > 43).astype(int) for frame in (people, new))
columns = ["training", "hours", "sex", "region"]


def encoded(frame):
    """Numbers for scikit-learn."""
    return pd.get_dummies(frame[columns], drop_first=True).astype(float)


# %%
# A logistic regression as usual; fairlearn's reduction to demographic parity; and ciplearn on the counterfactual
# route.

usual = LogisticRegression(max_iter=1000).fit(encoded(people), granted)
parity = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(), max_iter=20)
parity.fit(encoded(people), granted, sensitive_features=people["sex"])

graph = world.graph.to_edges().replace("income", "granted")
table = people.drop(columns="income").assign(granted=granted)
ours = CIPClassifier(
    graph=CausalGraph.from_edges(graph), outcome="granted", protected=["sex"], inputs=columns, gamma=10,
    epochs=40, counterfactuals=fit_scm(world.graph, people), random_state=0,
).fit(table.drop(columns="granted"), table["granted"])  # fmt: skip

predictors = {
    "as usual": lambda frame: usual.predict(encoded(frame)),
    "fairlearn": lambda frame: parity.predict(encoded(frame), random_state=0),
    "ciplearn": lambda frame: ours.predict(frame),
}

# %%
# Three measures on new rows: accuracy; the difference of rates between the sexes; and how often the same person would
# have got another answer had the sex been different.

other = world.counterfactual(new, {"sex": np.where(new["sex"] == "f", "m", "f")})
figures = pd.DataFrame(
    {
        name: {
            "accuracy": np.mean(predict(new) == granted_new),
            "difference of rates": demographic_parity_difference(
                granted_new, predict(new), sensitive_features=new["sex"]
            ),
            "same person, other answer": np.mean(predict(new) != predict(other)),
        }
        for name, predict in predictors.items()
    }
)
print(figures.round(2))

axes = figures.plot.bar(figsize=(8, 3.4), rot=0, color=["#8a8f98", "#d9a441", "#1b7ab8"])
axes.legend(frameon=False)
plt.tight_layout()

# %%
# In this world most of the difference between the groups is caused by sex, so that both roads lead to much the same
# place. They part
# where groups differ for other reasons, and where the protected column is a number.
