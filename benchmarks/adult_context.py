"""What the choice of context W costs and buys on Adult.

Run: python benchmarks/adult_context.py [--data FOLDER]
For each context that the criterion certifies, and each gamma: accuracy on test rows, and variance of counterfactuals
at two depths. Per person, E_w Var_a'(E[Ŷ*_a' | w]) with w the whole row; per context, with w the columns of W alone, so
that people who share them are averaged first. A context asks for the second to vanish.
"""

import argparse

import numpy as np
import pandas as pd
import torch

from ciplearn import CIPClassifier, fit_scm
from ciplearn.datasets import graphs, load_adult
from ciplearn.evaluation.counterfactual_rows import Points
from ciplearn.scm import VariationalLatent

ROOTS = ["race", "native-country"]
CONTEXTS = {
    "race, country": ROOTS,
    "+ marital status": [*ROOTS, "marital-status"],
    "+ education": [*ROOTS, "marital-status", "education"],
    "+ work (everything)": None,
}
GAMMAS = (0.0, 100.0, 300.0, 1000.0, 3000.0)
PROTECTED = ["age", "sex"]


class Imagined:
    """Counterfactual rows of the points under one list of interventions that all of them share."""

    def __init__(self, scm, rows, n_points, n_interventions, n_draws):
        generator = np.random.default_rng(0)
        self.points = Points.of(len, scm, rows, PROTECTED, n_points, n_draws, None, None, generator)
        self.known = rows.loc[self.points.units.index]
        self.k = n_interventions
        grid = rows[PROTECTED].sample(n_interventions, random_state=0)
        values = pd.concat([grid] * self.points.n, ignore_index=True)
        self.frame = self.points.had_been(np.arange(self.points.n), self.k, values, generator).reset_index(drop=True)

    def vcf(self, model, context):
        """Per person and per context."""
        said = self.points.averaged(model.predict_proba(self.frame)[:, 1], self.points.n, self.k)[:, :, 0]
        person = said.var(axis=1).mean()
        columns = list(self.known.columns) if context is None else context
        cells = self.known.groupby(columns, observed=True).ngroup().to_numpy()
        means = pd.DataFrame(said).groupby(cells).mean()
        return person, means.var(axis=1, ddof=0).loc[cells].mean()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the folder with adult.data and adult.test")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=200)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    adult = load_adult(asked.data)
    train = adult.train.sample(asked.rows, random_state=0)
    X, y = train.drop(columns="income"), train["income"]
    scm = fit_scm(graphs.adult_columns(), train, mechanisms={"H_r": VariationalLatent(epochs=50)})
    imagined = Imagined(scm, adult.test, n_points=1000, n_interventions=20, n_draws=10)
    for name, context in CONTEXTS.items():
        for gamma in GAMMAS:
            model = CIPClassifier(
                graph=graphs.adult_columns(),
                context=context,
                gamma=gamma,
                epochs=asked.epochs,
                learning_rate=3e-3,
                random_state=0,
            ).fit(X, y)
            person, cell = imagined.vcf(model, context)
            score = model.score(adult.test.drop(columns="income"), adult.test["income"])
            print(f"{name:22s} gamma {gamma:6g}  accuracy {score:.4f}  VCF person {person:.2e}  context {cell:.2e}")


if __name__ == "__main__":
    main()
