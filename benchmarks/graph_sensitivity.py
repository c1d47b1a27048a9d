"""How long `sensitivity` takes over 200 graphs of ten nodes, and `falsify` on the same graph.

The graphs are all single changes of one, hidden common causes of every pair among them, and further changes of those
until there are enough. CPU seconds are counted in this process with ``--jobs 1``; with more, only wall time is.

    python benchmarks/graph_sensitivity.py --graphs 200 --rows 5000 --jobs 2
"""

import argparse
import time
from itertools import chain, islice

import numpy as np
import pandas as pd
import torch

from ciplearn import CausalGraph, sensitivity
from ciplearn.doubt.graph_sensitivity import single_changes

GRAPH = CausalGraph.from_edges(
    "S -> A, S -> C, A -> B, A -> C, B -> D, C -> D, C -> E, D -> F, E -> F, F -> G, H -> G, H -> E, G -> Y, D -> Y"
)


def people(n):
    """Rows of the graph with bent mechanisms and normal noise."""
    generator = np.random.default_rng(0)
    values = {}
    for node in GRAPH.topological_order():
        causes = [values[parent] for parent in GRAPH.parents(node)]
        values[node] = sum((0.6 * np.tanh(cause) + 0.3 * cause for cause in causes), generator.normal(size=n))
    return pd.DataFrame(values)


def predictor(rows):
    """A finished model."""
    return rows["D"] + rows["E"]


def main():
    """Print the time of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--tested-rows", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    singles = list(single_changes(GRAPH))
    twice = (variant for single in singles if not single.hidden for variant in single_changes(single.graph))
    graphs = [variant.graph for variant in islice(chain(singles, twice), options.graphs)]
    wall, cpu = time.perf_counter(), time.process_time()
    found = sensitivity(
        predictor,
        GRAPH,
        people(options.rows),
        graphs,
        outcome="Y",
        protected=["A"],
        inputs=["D", "E"],
        n_jobs=options.jobs,
    )
    hidden = sum(bool(graph.bidirected) for graph in graphs)
    print(
        f"sensitivity: {len(graphs)} graphs, {hidden} with a hidden cause, {options.rows} rows, {options.jobs} "
        f"processes: {time.perf_counter() - wall:.0f} s, {time.process_time() - cpu:.0f} CPU seconds in this process"
    )
    print(found)
    rows = people(options.tested_rows)
    wall, cpu = time.perf_counter(), time.process_time()
    print(GRAPH.falsify(rows))
    print(
        f"falsify: {options.tested_rows} rows: {time.perf_counter() - wall:.0f} s, {time.process_time() - cpu:.0f} CPU "
        "seconds"
    )


if __name__ == "__main__":
    main()
