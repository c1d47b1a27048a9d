"""Level and power of `CausalGraph.falsify` on random graphs.

Level: data from the graph itself, which must be refuted in at most 5 %. Power: one edge of the true graph with a
standardised coefficient of at least 0.3 is left out; counted where the smaller graph implies a test.

Run ``python benchmarks/falsification.py --graphs 1000 --jobs 16``.
"""

import argparse

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed

from ciplearn import CausalGraph

KINDS = ("linear", "nonlinear", "mixed")


def drawn(seed):
    """A random graph with 6 to 10 nodes and about as many edges, in which each node has at most four parents."""
    generator = np.random.default_rng([16, seed])
    size = int(generator.integers(6, 11))
    names = [f"x{place}" for place in range(size)]
    edges = []
    for place in range(1, size):
        count = int(min(place, generator.binomial(4, min(1.0, 2.5 / size))))
        edges += [(names[int(parent)], names[place]) for parent in generator.choice(place, count, replace=False)]
    return CausalGraph(nodes=names, directed=edges), generator


def sampled(graph, kind, n, generator):
    """Rows whose nodes have unit variance; per edge the coefficient of the standardised parent, 0.3 to 0.6."""
    values, weights = {}, {}
    for node in graph.topological_order():
        total = np.zeros(n)
        for parent in graph.parents(node):
            weight = generator.uniform(0.3, 0.6) * generator.choice([-1, 1])
            weights[parent, node] = weight
            total += weight * effect(kind, values[parent], generator)
        noise = generator.normal(size=n)
        whole = total + noise * np.sqrt(max(1 - total.var(), 0.3))
        if kind == "mixed" and generator.uniform() < 0.4:
            whole = np.digitize(whole, np.quantile(whole, [0.35, 0.7]))
            values[node] = standardised(whole.astype(float))
        else:
            values[node] = standardised(whole)
    table = pd.DataFrame(values)
    if kind == "mixed":
        few = [name for name in table if table[name].nunique() <= 3]
        table = table.assign(**{name: table[name].round(3).astype(str) for name in few})
    return table, weights


def effect(kind, parent, generator):
    """The parent itself, or a bent function of it."""
    if kind != "nonlinear":
        return parent
    shape = generator.integers(3)
    return standardised((np.sin(2 * parent), np.tanh(2 * parent), parent + 0.5 * parent**2)[shape])


def standardised(values):
    """Mean zero, variance one."""
    return (values - values.mean()) / values.std()


def judged(seed, kind, rows, leave_out):
    """Whether the graph of a seed, or the graph less one edge, is refuted."""
    torch.set_num_threads(1)
    graph, generator = drawn(seed)
    table, weights = sampled(graph, kind, rows, generator)
    if leave_out:
        edges = list(weights)
        if not edges:
            return None
        gone = edges[int(generator.integers(len(edges)))]
        graph = CausalGraph(nodes=graph.nodes, directed=[edge for edge in graph.directed if edge != gone])
    return graph.falsify(table, n_permutations=0, random_state=seed).refuted


def main():
    """Print one line per setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=30, help="per kind of data")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--only", choices=["level", "power"])
    options = parser.parse_args()
    with Parallel(n_jobs=options.jobs) as parallel:
        for what, rows, leave_out in (("level", 500, False), ("power", 1000, True)):
            if options.only not in (None, what):
                continue
            for kind in options.kinds:
                found = parallel(delayed(judged)(seed, kind, rows, leave_out) for seed in range(options.graphs))
                decided = [answer for answer in found if answer is not None]
                share, error = np.mean(decided), np.sqrt(np.mean(decided) * (1 - np.mean(decided)) / len(decided))
                print(
                    f"{what} {kind:10s} {rows} rows: refuted {share:.1%} ± {error:.1%} of {len(decided)} graphs, "
                    f"{len(found) - len(decided)} not judged",
                    flush=True,
                )


if __name__ == "__main__":
    main()
