"""The default's frontier on a process that had no part in choosing the default: three-dimensional A.

Run: python benchmarks/frontier_elsewhere.py
"""

import numpy as np
import torch
from frontier_quality import at_share

from ciplearn import CIPRegressor, Independence, datasets, frontier, variance_of_counterfactuals
from ciplearn.datasets import MinMaxScaling


def main(epochs=60):
    """Print the ratio to CF1's error and the frontier."""
    torch.set_num_threads(1)
    scm = datasets.multidimensional(3)
    raw = scm.sample(10_000, random_state=0)
    scaling = MinMaxScaling.fit(raw)
    table, scaled = scaling.transform(raw), scaling.model(scm)
    train, test = table.iloc[:8000], table.iloc[8000:]
    protected = [column for column in table.columns if column.startswith("A")]
    features = ["Z", "L", *protected]
    cf1 = CIPRegressor(epochs=epochs, random_state=0).fit(train[["Z"]], train["Y"])
    cf1_error = np.mean((cf1.predict(test[["Z"]]) - test["Y"]) ** 2)

    def vcf(model):
        found = variance_of_counterfactuals(
            model, scaled, test, protected=["A"], n_points=300, n_interventions=100, random_state=0
        )
        return found.value

    found = frontier(
        CIPRegressor(independence=Independence(right=["L", *protected], given=["Z"]), epochs=epochs),
        train[features],
        train["Y"],
        (0, 0.3, 1, 2.5, 8),
        range(2),
        test=(test[features], test["Y"]),
        measures={"vcf": vcf},
    ).summary()
    print(f"CF1 error {cf1_error:.3e}; {at_share(found, 0.05) / cf1_error:.2f} × CF1 at 5 % VCF")
    print(found[["gamma", "loss", "vcf"]].to_string(index=False))


if __name__ == "__main__":
    main()
