"""Test error at a variance of counterfactuals of 5 % of the unconstrained one, as a ratio to CF1's.

Run: python benchmarks/frontier_quality.py [--seeds 5] [--epochs 100] [--jobs 2] [--only-default]; a CUDA device is used
where there is one, and takes about three minutes.
"""

import argparse

import numpy as np
import pandas as pd
import torch
from processes import CHOSEN_ON, NEW

from ciplearn import HSCIC, CIPRegressor, Gaussian, Linear, ResidualHSCIC, frontier
from ciplearn.baselines import CF1
from ciplearn.causal.vector_columns import columns_of
from ciplearn.datasets import MinMaxScaling

GAMMAS = (0.0, 0.1, 0.3, 0.6, 1.0, 1.8, 3.0, 6.0, 15.0, 50.0)


def penalties(spread):
    """Name -> what differs from the default, and by how much gammas are stretched."""
    return {
        "default": ({"gamma_scale": 1.0}, 1),
        "length scale halved": ({"penalty": ResidualHSCIC(kernel=Gaussian(0.7 * spread))}, 0.3),
        "length scale doubled": ({"penalty": ResidualHSCIC(kernel=Gaussian(2.8 * spread))}, 3),
        "ridge 1e-2": ({"penalty": ResidualHSCIC(kernel=Gaussian(2**0.5 * spread), ridge=1e-2)}, 1),
        "linear kernel": ({"penalty": ResidualHSCIC(kernel=Linear())}, 0.3 / spread**2),
        "HSCIC as in the paper": ({"penalty": HSCIC.paper()}, 1),
    }


def at_share(summary, share):
    """Smallest loss where the log of vcf crosses ``share`` of its value at gamma 0, by linear interpolation."""
    target = np.log(share * summary["vcf"].iloc[0])
    vcf, loss = np.log(summary["vcf"].to_numpy()), summary["loss"].to_numpy()
    crossings = [
        loss[i] + (loss[i + 1] - loss[i]) * (target - vcf[i]) / (vcf[i + 1] - vcf[i])
        for i in range(len(vcf) - 1)
        if (vcf[i] - target) * (vcf[i + 1] - target) <= 0
    ]
    return min(crossings, default=float("nan"))


class Case:
    """Scaled rows of a process, and counterfactual rows that are the same for all models."""

    def __init__(self, name, scm, points=400, interventions=150):
        raw = scm.sample(10_000, random_state=0)
        if name == "scenario 2":
            raw = raw[raw["A"].abs() < 5.5]  # beyond, rounding hides the noise of L
        scaling = MinMaxScaling.fit(raw)
        table, scaled = scaling.transform(raw), scaling.model(scm)
        cut = int(0.8 * len(table))
        train, test = table.iloc[:cut], table.iloc[cut:]
        self.name, self.graph = name, scm.graph
        self.X, self.y = train.drop(columns="Y"), train["Y"]
        self.test = test.drop(columns="Y"), test["Y"]
        protected = list(columns_of("A", table.columns))
        draws = train[protected].sample(interventions, random_state=0).to_numpy()
        worlds = [scaled.counterfactual(test.head(points), {"A": draw if len(draw) > 1 else draw[0]}) for draw in draws]
        self.worlds, self.shape = pd.concat(worlds)[list(self.X.columns)], (interventions, -1)

    def vcf(self, model):
        """Mean over rows of the variance over interventions."""
        return float(model.predict(self.worlds).reshape(self.shape).var(axis=0).mean())


def study(case, options):
    """Print one line a penalty."""
    roles = {"graph": case.graph, "outcome": "Y", "protected": ["A"], "epochs": options.epochs}
    errors = [
        np.mean((CF1(**roles, random_state=seed).fit(case.X, case.y).predict(case.test[0]) - case.test[1]) ** 2)
        for seed in range(2)
    ]
    cf1 = float(np.mean(errors))
    print(f"{case.name}: CF1 error {cf1:.2e}, spread of the outcome {case.y.std():.3f}", flush=True)
    for label, (changes, stretch) in penalties(float(case.y.std())).items():
        if options.only_default and label != "default":
            continue
        found = frontier(
            CIPRegressor(**roles, **changes),
            case.X,
            case.y,
            [stretch * gamma for gamma in GAMMAS],
            range(options.seeds),
            test=case.test,
            measures={"vcf": case.vcf},
            n_jobs=options.jobs,
        ).summary()
        curve = "  ".join(f"{row.loss / cf1:.2f}/{row.vcf / found['vcf'].iloc[0]:.3f}" for row in found.itertuples())
        print(f"  {label}: {at_share(found, 0.05) / cf1:.2f} × CF1 at 5 % VCF  (error/VCF: {curve})", flush=True)


def main():
    """Run the cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only-default", action="store_true")
    parser.add_argument("--only", help="names of processes, with commas between them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, process in (CHOSEN_ON | NEW).items():
        if options.only is None or name in options.only.split(","):
            study(Case(name, process()), options)


if __name__ == "__main__":
    main()
