"""
Sweeping a frontier
===================

Error against invariance over many gammas, with the known causal model as the judge, and the baselines beside it.
"""

import matplotlib.pyplot as plt

from ciplearn import CIPRegressor, FrontierDisplay, baselines, datasets, frontier, variance_of_counterfactuals

world = datasets.applicants()
train, test = world.sample(1200, random_state=0), world.sample(400, random_state=1)
X, y = train.drop(columns="income"), train["income"]
roles = {"graph": world.graph, "outcome": "income", "protected": ["sex", "age"], "epochs": 40}


def vcf(model, *_):
    """How much answers vary had sex and age been different, under the true model."""
    found = variance_of_counterfactuals(model, world, test, ["sex", "age"], n_points=100, n_interventions=60)
    return found.value


curve = frontier(
    CIPRegressor(**roles),
    X,
    y,
    gammas=[0, 0.1, 0.3, 1, 3, 10],
    seeds=[0],
    test=(test.drop(columns="income"), test["income"]),
    measures={"vcf": vcf},
)
print(curve.summary().to_string(index=False, float_format="{:.3g}".format))

# %%
# CF1 sees nothing that sex or age act on. CF2 sees what is left of the other columns after regression on their
# parents.

points = {}
for name, kind in {"CF1": baselines.CF1, "CF2": baselines.CF2, "left out": baselines.NaivePredictor}.items():
    rival = kind(**roles, random_state=0).fit(X, y)
    error = ((rival.predict(test.drop(columns="income")) - test["income"]) ** 2).mean()
    points[name] = (vcf(rival), error)

figure, panel = plt.subplots(figsize=(7, 3.4))
FrontierDisplay.from_frontier(curve, baselines=points).plot(panel)
figure.tight_layout()
