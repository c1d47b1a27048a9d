"""Cosine between the gradient of the low-rank penalty and that of the exact one, by numbers of columns, and on Adult.

Run: python benchmarks/low_rank.py [--rows 4000] [--only 1+1,3+3] [--adult FOLDER WITH adult.data AND adult.test].
About four minutes on one idle core, most of it for the exact operators.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor, Gaussian, ResidualHSCIC, datasets
from ciplearn.causal import Independence

# Conditioning and right-hand columns.
SETTINGS = ((1, 1), (1, 3), (3, 3), (1, 10), (10, 10), (30, 30))
GRAPH = Path(__file__).parent.parent / "examples" / "adult" / "graph.txt"


def made_rows(n, n_given, n_right):
    """A table of S, of R that depends on S, and of an outcome that depends on both."""
    rng = np.random.default_rng(0)
    given = rng.normal(size=(n, n_given))
    right = np.tanh(given @ rng.normal(size=(n_given, n_right)) / n_given**0.5) + 0.7 * rng.normal(size=(n, n_right))
    from_given = given @ rng.normal(size=n_given) / n_given**0.5
    from_right = right @ rng.normal(size=n_right) / n_right**0.5
    y = np.sin(2 * from_given) + from_right + from_given * from_right + 0.3 * rng.normal(size=n)
    names = [f"S{i}" for i in range(n_given)], [f"R{i}" for i in range(n_right)]
    table = pd.DataFrame(np.hstack([given, right]), columns=[*names[0], *names[1]])
    return table, y, Independence(right=names[1], given=names[0])


def gradient(operator, prediction):
    """Gradient of the penalty on all rows."""
    y_hat = torch.tensor(prediction, dtype=torch.float32).requires_grad_()
    (found,) = torch.autograd.grad(operator(y_hat), y_hat)
    return found.double().flatten()


def study(name, model, X, y, outcome, kernel, predict):
    """Print one line: storage, the error that the operator reports, and a cosine per prediction."""
    predictions = {}
    for epochs in (2, 20):
        fitted = model.set_params(epochs=epochs, gamma=0.0).fit(X, y)
        predictions[f"{epochs} epochs"] = predict(fitted)
    rng = np.random.default_rng(1)
    predictions["outcome + noise"] = outcome + 0.5 * outcome.std() * rng.normal(size=len(outcome))
    exact, low = (
        fitted.set_params(penalty=ResidualHSCIC(kernel=kernel, exact_rows=exact_rows)).penalty_operator(X)
        for exact_rows in (None, 0)
    )
    cosines = [
        float(torch.cosine_similarity(gradient(exact, values), gradient(low, values), dim=0))
        for values in predictions.values()
    ]
    kind = f"{type(low.storage).__name__} of {low.storage.width} numbers per row"
    print(
        f"{name}: {', '.join(f'{cosine:.3f} ({key})' for key, cosine in zip(predictions, cosines, strict=True))}; "
        f"{kind}, relative error {low.relative_error:.2f} reported",
        flush=True,
    )
    return cosines


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--only", help="settings like 3+3, with commas between them")
    parser.add_argument("--adult", help="folder with adult.data and adult.test")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"Cosine of gradients at {options.rows} rows, by conditioning + right-hand columns and prediction")
    found = []
    for n_given, n_right in SETTINGS:
        if options.only and f"{n_given}+{n_right}" not in options.only.split(","):
            continue
        X, y, independence = made_rows(options.rows, n_given, n_right)
        model = CIPRegressor(independence=independence, random_state=0)
        kernel = Gaussian(2**0.5 * y.std())  # what the regressor takes by itself
        found += study(f"{n_given}+{n_right}", model, X, y, y, kernel, lambda fitted, X=X: fitted.predict(X))
    if options.adult:
        table = datasets.load_adult(options.adult).train.iloc[: options.rows]
        X, y = table.drop(columns="income"), table["income"]
        model = CIPClassifier(graph=CausalGraph.from_file(GRAPH), random_state=0)
        outcome = 0.25 + 0.5 * (y == sorted(y.unique())[-1]).to_numpy(dtype=float)
        found += study("Adult", model, X, y, outcome, Gaussian(0.3), lambda fitted: fitted.predict_proba(X)[:, 1])
    print(f"smallest: {min(found):.3f}")


if __name__ == "__main__":
    main()
