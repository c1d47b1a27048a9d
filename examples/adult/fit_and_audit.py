"""Income on the Adult data with age and sex protected: verdict, search for gamma, causal model, audit.

Run: python examples/adult/fit_and_audit.py [FOLDER WITH adult.data AND adult.test]
The data is downloaded where it is neither named nor in the folder of CIPLEARN_DATA. About two minutes on one core.
"""

import sys
from pathlib import Path

import torch

from ciplearn import CausalGraph, CIPClassifier, GammaSearch, audit, datasets, fit_scm

torch.set_num_threads(1)

graph = CausalGraph.from_file(Path(__file__).parent / "graph.txt")
print(graph.criterion().headline())

adult = datasets.load_adult(sys.argv[1] if len(sys.argv) > 1 else None)
train, test = adult.train.iloc[:6000], adult.test.iloc[:3000]
X, y = train.drop(columns="income"), train["income"]

# Age gets a Gaussian kernel, labels one that asks whether they are equal.
model = CIPClassifier(graph=graph, epochs=20, random_state=0)
search = GammaSearch(model, tolerance=0.02, low=1.0, high=1e4, max_trials=6, random_state=0).fit(X, y)
print(f"\nLargest gamma that costs at most two points of accuracy: {search.best_gamma_:.3g}")
print(search.frontier_.table.drop(columns="seed").to_string(index=False, float_format="{:.4g}".format))

scm = fit_scm(graph, train)  # H_r, which three columns share, becomes an autoencoder
print(f"\n{scm.report}")

free = model.set_params(gamma=0.0).fit(X, y)
for name, fitted in {"without a penalty": free, "chosen": search.best_estimator_}.items():
    print(f"\n{name}")
    print(audit(fitted, scm, test, "income", ["age", "sex"], n_points=200, n_interventions=30, n_draws=10))
