"""Small discrete causal models in full: every state of the noise is enumerated, in both worlds."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from ciplearn.doubt.response_functions import Component, DiscreteLaw, ObservedGraph, conditional, minimiser


@dataclass
class NoiseModel:
    """Every node, latent or not, is a table of its parents, its bidirected causes and its own noise."""

    graph: object
    tables: dict
    noise: dict  # name or bidirected pair -> array of states
    weight: np.ndarray

    @classmethod
    def at_random(cls, graph, rng, levels, states=3):
        names = [*graph.nodes, *graph.bidirected]
        grid = np.array(list(product(range(states), repeat=len(names))))
        noise = dict(zip(names, grid.T, strict=True))
        laws = {name: rng.dirichlet(np.full(states, 0.8)) for name in names}
        weight = np.prod([laws[name][noise[name]] for name in names], axis=0)
        size = {name: levels.get(name, 2) for name in graph.nodes}
        tables = {}
        for name in graph.nodes:
            shape = [size[p] for p in graph.parents(name)] + [states] * (1 + sum(name in b for b in graph.bidirected))
            tables[name] = rng.integers(0, size[name], size=shape)
        return cls(graph, tables, noise, weight)

    def run(self, do):
        values = {}
        for name in self.graph.topological_order():
            if name in do:
                values[name] = np.full(len(self.weight), do[name])
            else:
                causes = [values[p] for p in self.graph.parents(name)]
                causes += [self.noise[pair] for pair in self.graph.bidirected if name in pair]
                values[name] = self.tables[name][(*causes, self.noise[name])]
        return values

    def law(self):
        """The joint probabilities of the observed nodes."""
        frame = pd.DataFrame({name: self.run({})[name] for name in self.graph.observed})
        return pd.Series(self.weight).groupby([frame[name] for name in frame]).sum().rename_axis(list(frame))

    def answer(self, event, do, given):
        """P(event had do been done | given), or None where the evidence has probability 0."""
        seen, imagined = self.run({}), self.run(do)
        holds = np.all([seen[name] == level for name, level in given.items()] or [self.weight >= 0], axis=0)
        would = np.all([imagined[name] == level for name, level in event.items()], axis=0)
        whole = self.weight[holds].sum()
        return None if whole < 1e-12 else self.weight[holds & would].sum() / whole


def answer_by_response_functions(graph, laws, event, do, given):
    """Joint law and P(event had do been done, given), from laws of whole response functions, one per component.

    `laws` is a list of lists of (probability, {(node, parents' levels): level}).
    """
    parents = ObservedGraph.of(graph).parents
    joint, wanted = {}, 0.0
    for picks in product(*laws):
        weight = np.prod([probability for probability, _ in picks])
        responses = {key: level for _, functions in picks for key, level in functions.items()}
        worlds = []
        for setting in ({}, do):
            values = {}
            for node in parents:
                at = tuple(values[p] for p in parents[node])
                values[node] = setting[node] if node in setting else responses[node, at]
            worlds.append(values)
        seen, imagined = worlds
        key = tuple(seen[node] for node in graph.observed)
        joint[key] = joint.get(key, 0.0) + weight
        if all(seen[n] == v for n, v in given.items()) and all(imagined[n] == v for n, v in event.items()):
            wanted += weight
    return joint, wanted


def whole_laws(graph, law, bounds, end):
    """Laws of whole response functions, one per component, as `answer_by_response_functions` takes them.

    Components that are open in the bounds have the law that belongs to their `end`; the others any law that fits.
    """
    observed = ObservedGraph.of(graph)
    read = DiscreteLaw.read(law, tuple(observed.parents))
    everywhere = {n: list(product(*(range(read.size(p)) for p in observed.parents[n]))) for n in observed.parents}

    def told(node, at):
        return tuple(read.levels[p][v] for p, v in zip(observed.parents[node], at, strict=True))

    found = []
    for nodes in observed.components():
        component = Component(nodes, observed, read, ({n: everywhere[n] for n in nodes},))
        if len(nodes) == 1:
            weights = _completed(component, bounds.laws.get(nodes), end)
        elif nodes in bounds.laws:
            weights = bounds.laws[nodes][end].to_numpy()
        else:
            weights = minimiser(np.zeros(component.size), *component.constraints)
        columns = [(n, place, at) for n in nodes for place, at in enumerate(everywhere[n])]
        found.append(
            [
                (
                    weights[row],
                    {(n, told(n, at)): read.levels[n][component.responses[n][row, k]] for n, k, at in columns},
                )
                for row in np.flatnonzero(weights > 1e-12)
            ]
        )
    return found


def _completed(component, frame, end):
    """The law of one node's whole response function: blocks, and where nothing was looked at, are independent draws."""
    (node,), law = component.nodes, component.law
    parents = component.graph.parents[node]
    total = np.ones(component.size)
    looked_at = {}
    for place, at in enumerate(component.configurations[node]):
        there = ", ".join(f"{p} = {law.levels[p][v]}" for p, v in zip(parents, at, strict=True))
        column = f"{node} where {there}" if there else node
        response = np.array([law.levels[node][v] for v in component.responses[node][:, place]])
        if frame is not None and column in frame:
            looked_at[column] = response
        else:
            values = dict(zip(parents, at, strict=True))
            chances = [conditional(law, component.graph, node, {**values, node: v}) for v in range(law.size(node))]
            total *= np.array([1 / len(chances) if p is None else p for p in chances])[
                component.responses[node][:, place]
            ]
    if frame is not None:
        filled = frame[list(looked_at)].notna().apply(tuple, axis=1)
        for block in filled.unique():
            rows = frame[[mask == block for mask in filled]]
            share = np.zeros(component.size)
            for _, row in rows.iterrows():
                columns = [column for column, is_filled in zip(looked_at, block, strict=True) if is_filled]
                share += row[end] * np.all([looked_at[column] == row[column] for column in columns], axis=0)
            total *= share
    return total
