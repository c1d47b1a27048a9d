"""How long `fit_scm` and imagining take on one thread, and how well every node is predicted on rows not fitted to.

Adult with and without its latent node, the start page's applicants, and a table of labels, counts and amounts. A score
is a share of the loss that knowing the parents saves: of the CRPS of numbers, of the log loss of labels. A child of a
latent node has the score of its report.

    python benchmarks/causal_models.py [--adult FOLDER] [--rows 8000] [--small 2000] [--imagine 100000]
"""

import argparse
import time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ciplearn import CausalGraph, datasets, fit_scm
from ciplearn.datasets import graphs
from ciplearn.scm.mechanism import NodeSample
from ciplearn.scm.report import marginal_losses, row_losses

MIXED = CausalGraph.from_edges(
    "sex -> job, age -> job, job -> visits, age -> visits, sex -> pay, job -> pay, age -> pay"
)
CHAIN = 10


def adult_without_latents():
    """Every column of Adult has all columns before it as causes."""
    roots = ["age", "sex", "race", "native-country"]
    order = [
        *roots,
        "marital-status",
        "education",
        "workclass",
        "occupation",
        "hours-per-week",
        "capital-gain",
        "income",
    ]
    edges = [(cause, node) for place, node in enumerate(order) if node not in roots for cause in order[:place]]
    return CausalGraph.from_edges(edges)


def mixed(rows, generator):
    """Return labels, counts and positive amounts."""
    age, sex = generator.uniform(20, 60, rows), generator.choice(["f", "m"], rows)
    scores = np.stack([0.05 * (age - 40), (sex == "f") * 1.0, 0.001 * (age - 40) ** 2], axis=1)
    job = np.array(["clerk", "nurse", "guard"])[(scores + generator.gumbel(size=scores.shape)).argmax(axis=1)]
    visits = generator.poisson(np.exp(0.3 + 0.02 * (age - 40) + 0.6 * (job == "nurse")))
    pay = np.exp(7 + 0.01 * age + 0.2 * (sex == "m") + 0.3 * (job == "guard") + 0.4 * generator.normal(size=rows))
    return pd.DataFrame({"age": age, "sex": sex, "job": job, "visits": visits, "pay": pay})


def chain(rows, generator):
    """Return ten nodes, each with the two before it as causes, and the graph."""
    values = [generator.normal(size=rows)]
    for place in range(1, CHAIN):
        noise = generator.normal(size=rows) * (np.exp(0.2 * values[-1]) if place % 3 == 0 else 1.0)
        values.append(np.sin(values[-1]) + 0.5 * values[max(0, place - 2)] + noise)
    names = [f"V{place}" for place in range(CHAIN)]
    edges = [(names[cause], names[node]) for node in range(1, CHAIN) for cause in {node - 1, max(0, node - 2)}]
    return pd.DataFrame(dict(zip(names, values, strict=True))), CausalGraph.from_edges(edges)


def report(name, graph, table, fresh):
    """Fit, and print seconds and scores."""
    start = time.process_time()
    model = fit_scm(graph, table, random_state=0)
    print(f"{name}: {len(table)} rows, {time.process_time() - start:.2f} s")
    for fit in model.report.nodes:
        parents = model.graph.parents(fit.node)
        if not parents:
            continue
        value = fit.score
        if not set(parents) & model.graph.latent:
            names = (fit.node, *parents)
            values = {node: model.kinds[node].read(fresh, node) for node in names}
            sample = NodeSample(fit.node, model.kinds[fit.node], parents, values, model.kinds)
            seen = model.kinds[fit.node].read(table, fit.node)
            lost = row_losses(model.mechanisms[fit.node], sample, seen).mean()
            value = 1 - lost / marginal_losses(sample, seen).mean()
        print(f"  {fit.node:<16}{value:>8.4f}  {fit.mechanism}", flush=True)


def imagine(rows, worlds=16):
    """Print how long the other worlds of a table with ten nodes take."""
    table, graph = chain(rows, generator := np.random.default_rng(0))
    start = time.process_time()
    model = fit_scm(graph, table, random_state=0)
    print(f"{CHAIN} nodes, {rows} rows: fit {time.process_time() - start:.2f} s")
    start = time.process_time()
    units = model.abduct(table)
    for value in generator.normal(size=worlds):
        model.counterfactual(units, {"V0": value})
    print(f"  {worlds} worlds {time.process_time() - start:.2f} s")


def main():
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", help="the folder with adult.data and adult.test")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--imagine", type=int, default=100_000)
    given = parser.parse_args()
    with threadpool_limits(1):
        people = datasets.applicants()
        report(
            "applicants", people.graph, people.sample(given.small, random_state=0), people.sample(8000, random_state=1)
        )
        tables = [mixed(rows, np.random.default_rng(rows)) for rows in (given.small, 8000)]
        report("mixed", MIXED, *tables)
        if given.adult:
            adult = datasets.load_adult(given.adult, all_columns=True)
            few = adult.train.sample(given.rows, random_state=0).reset_index(drop=True)
            for name, graph in (("adult", graphs.adult_columns()), ("adult, no latents", adult_without_latents())):
                report(name, graph, few, adult.test)
        if given.imagine:
            imagine(given.imagine)


if __name__ == "__main__":
    main()
