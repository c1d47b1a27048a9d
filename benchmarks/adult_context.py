"""What the choice of context W costs and buys on Adult.

Run: python benchmarks/adult_context.py [--data FOLDER]
The variance of counterfactuals E_w Var_a'(E[Ŷ*_a' | w]) is measured with w the whole row, and with w the columns of W
alone, so that what they leave open is averaged first. A context asks for the second to vanish. For each context that
the criterion certifies, gamma is sought by bisection so that the second falls to a given share of what it is without a
penalty; what is printed then is the accuracy that is left.
"""

import argparse
import math

import torch

from ciplearn import CIPClassifier, Gaussian, ResidualHSCIC, fit_scm, variance_of_counterfactuals
from ciplearn.datasets import graphs, load_adult
from ciplearn.scm import VariationalLatent

ROOTS = ["race", "native-country"]
CONTEXTS = {
    "race, country": ROOTS,
    "+ marital status": [*ROOTS, "marital-status"],
    "+ education": [*ROOTS, "marital-status", "education"],
    "+ work (everything)": None,
}
PROTECTED = ["age", "sex"]


def vcf(model, scm, rows, context):
    """Per person and per context."""
    inputs = [column for column in rows.columns if column != "income"]
    person, group = (
        variance_of_counterfactuals(
            model, scm, rows, PROTECTED, 1000, 20, inputs=inputs, context=known, n_draws=draws
        ).value
        for known, draws in ((inputs, 10), (context or inputs, 10 if context is None else 100))
    )
    return person, group


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the folder with adult.data and adult.test")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--share", type=float, default=0.2, help="of the VCF without a penalty that may be left")
    parser.add_argument("--trials", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    adult = load_adult(asked.data)
    train = adult.train.sample(asked.rows, random_state=0)
    X, y = train.drop(columns="income"), train["income"]
    scm = fit_scm(graphs.adult_columns(), train, mechanisms={"H_r": VariationalLatent(epochs=50)})
    held_out = adult.test.drop(columns="income"), adult.test["income"]

    def measured(context: list[str] | None, gamma: float) -> tuple[float, float, float]:
        model = CIPClassifier(
            graph=graphs.adult_columns(),
            context=context,
            gamma=gamma,
            penalty=ResidualHSCIC(kernel=Gaussian(0.1)),
            hidden=(20,),
            epochs=asked.epochs,
            learning_rate=3e-3,
            random_state=0,
        ).fit(X, y)
        return model.score(*held_out), *vcf(model, scm, adult.test, context)

    for name, context in CONTEXTS.items():
        _, _, free = told(name, 0.0, measured(context, 0.0), None)
        low, high = math.log(30), math.log(10_000)
        for _ in range(asked.trials):
            middle = (low + high) / 2
            _, _, depth = told(name, math.exp(middle), measured(context, math.exp(middle)), free)
            low, high = (low, middle) if depth <= asked.share * free else (middle, high)


def told(name, gamma, found, free):
    """Print one line and return what was found."""
    score, person, depth = found
    share = "" if free is None else f"  {depth / free:.0%} of that without a penalty"
    print(
        f"{name:20s} gamma {gamma:6.0f}  accuracy {score:.4f}  VCF of a person {person:.2e}, of W {depth:.2e}{share}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
