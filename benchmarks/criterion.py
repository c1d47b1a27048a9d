"""What a page that judges while a graph is drawn waits for: criterion, repairs, weaker statements, adjustment sets.

Run: python benchmarks/criterion.py [--nodes 50] [--edges 120] [--graphs 40]
Random graphs with a few latent nodes and bidirected edges; half of the questions with default roles, half with a random
context. Times are of one thread's own time, and never asserted. The goal at 50 nodes and 120 edges: well under 100 ms
for all of it together.
"""

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ciplearn import CausalGraph


def drawn(rng: random.Random, nodes: int, edges: int) -> CausalGraph:
    """A random graph whose edges reach at most half of the way."""
    names = [f"v{number}" for number in range(nodes)]
    pairs = [(names[i], names[j]) for i in range(nodes) for j in range(i + 1, min(nodes, i + nodes // 2))]
    hidden = rng.sample(names[nodes // 10 : -nodes // 5], nodes // 16)
    confounded = rng.sample(pairs, nodes // 8)
    return CausalGraph.from_edges(rng.sample(pairs, edges), bidirected=confounded, latent=hidden, nodes=names)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--edges", type=int, default=120)
    parser.add_argument("--graphs", type=int, default=40)
    options = parser.parse_args()
    rng = random.Random(0)
    times: dict[str, list[float]] = {}
    refused = 0

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.process_time()
        yield
        times.setdefault(step, []).append(1e3 * (time.process_time() - start))

    for number in range(options.graphs):
        with timed("graph"):
            graph = drawn(rng, options.nodes, options.edges)
        outcome, protected = graph.observed[-1], graph.observed[2]
        others = [name for name in graph.observed if name != outcome]
        context = [name for name in others if rng.random() < 0.5] if number % 2 else None
        with timed("criterion"):
            verdict = graph.criterion(outcome, protected, context)
        refused += not verdict.holds
        for search in ("repairs", "weaker"):
            with timed(search):
                getattr(verdict, search)
        with timed("adjustment sets"):
            list(graph.minimal_adjustment_sets(protected, outcome, limit=10))
            graph.smallest_adjustment_set(protected, outcome)
        with timed("drawing"):
            graph.to_svg(verdict)
    print(f"{options.graphs} graphs of {options.nodes} nodes and {options.edges} edges, {refused} refused; ms")
    for step, taken in times.items():
        print(f"  {step:18} median {statistics.median(taken):6.1f}   largest {max(taken):6.1f}")
    together = [sum(times[step][place] for step in times if step != "drawing") for place in range(options.graphs)]
    print(f"  {'all but drawing':18} median {statistics.median(together):6.1f}   largest {max(together):6.1f}")


if __name__ == "__main__":
    main()
