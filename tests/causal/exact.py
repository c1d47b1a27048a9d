"""Exact counterfactuals of small binary models: what the criterion certifies must be true of every predictor.

Every node takes two values and is a random function of its parents and of its own noise, with both values possible
everywhere. A predictor is any table f(inputs) in [0, 1]. Independence Ŷ ⊥ X | S is linear in f, and so is invariance:
so all predictors are judged at once, by a basis of those that satisfy the independence.
"""

from itertools import product

import numpy as np

_NOISE = 3


class BinaryModel:
    def __init__(self, graph, weights, tables):
        self.graph = graph
        self.order = graph.topological_order()
        self.table = tables
        names = [*self.order, *graph.bidirected]
        grid = np.array(list(product(*(range(len(weights[name])) for name in names))))
        self.noise = dict(zip(names, grid.T, strict=True))
        self.weight = np.prod([weights[n][column] for n, column in zip(names, grid.T, strict=True)], axis=0)

    @classmethod
    def at_random(cls, graph, rng):
        weights = {name: rng.dirichlet(np.full(_NOISE, 4.0)) for name in graph.nodes}
        weights |= {pair: rng.dirichlet(np.full(2, 4.0)) for pair in graph.bidirected}
        tables = {}
        for name in graph.nodes:
            # One noise gives 0 and another gives 1, whatever the parents: both values occur everywhere.
            table = rng.integers(0, 2, size=(2 ** _causes(graph, name), _NOISE))
            flips = rng.integers(0, 2, size=len(table))
            table[:, 0], table[:, 1] = flips, 1 - flips
            tables[name] = table
        return cls(graph, weights, tables)

    @classmethod
    def with_fair_noise(cls, graph, functions):
        """Write each node as a function of its causes (parents, then hidden ones) and of a fair coin."""
        fair = dict.fromkeys((*graph.nodes, *graph.bidirected), np.array([0.5, 0.5]))
        tables = {}
        for name in graph.nodes:
            function = functions.get(name, lambda *bits: bits[-1])
            rows = product((0, 1), repeat=_causes(graph, name))
            tables[name] = np.array([[function(*row, noise) for noise in (0, 1)] for row in rows])
        return cls(graph, fair, tables)

    def run(self, do=None):
        values = {}
        for name in self.order:
            if do and name in do:
                values[name] = np.full(len(self.weight), do[name])
                continue
            causes = [values[parent] for parent in self.graph.parents(name)]
            causes += [self.noise[pair] for pair in self.graph.bidirected if name in pair]
            values[name] = self.table[name][_code(causes, len(self.weight)), self.noise[name]]
        return values


def _causes(graph, name):
    return len(graph.parents(name)) + sum(name in pair for pair in graph.bidirected)


def _code(columns, rows):
    code = np.zeros(rows, dtype=int)
    for column in columns:
        code = 2 * code + column
    return code


def _one_hot(code, size):
    return np.eye(size)[code]


def holds_by_inputs(verdict):
    """The condition on inputs, from its wording."""
    affected = verdict.graph.descendants(verdict.protected)
    return set(verdict.inputs) <= set(verdict.respects) and affected.isdisjoint(
        {*verdict.inputs} & {*verdict.adjustment}
    )


def invariance_error(model, verdict, everything=False):
    """Largest change of a counterfactual mean over all predictors that satisfy the verdict's independence.

    Means are taken over people alike in what the verdict respects, or, with `everything`, in all their noise too.
    """
    values = model.run()
    rows, weight = len(model.weight), model.weight
    column = lambda names, source=values: _code([source[name] for name in names], rows)  # noqa: E731
    seen = 2 ** len(verdict.inputs)
    x, s = column(verdict.independence.right), column(verdict.independence.given)
    inputs = _one_hot(column(verdict.inputs), seen)
    constraints = []
    for given in np.unique(s):
        stratum = np.where(s == given, weight, 0.0)
        for right in np.unique(x[s == given]):
            cell = np.where(x == right, stratum, 0.0)
            constraints.append((cell @ inputs) * stratum.sum() - cell.sum() * (stratum @ inputs))
    _, sizes, basis = np.linalg.svd(np.array(constraints))
    independent = basis[int((sizes > 1e-9).sum()) :].T  # (seen, number of free directions)
    person = np.arange(rows) if everything else column(verdict.respects)
    error = 0.0
    reference = None
    for setting in product((0, 1), repeat=len(verdict.protected)):
        changed = model.run(dict(zip(verdict.protected, setting, strict=True)))
        response = _one_hot(column(verdict.inputs, changed), seen) @ independent
        grouped = np.zeros((person.max() + 1, independent.shape[1]))
        np.add.at(grouped, person, weight[:, None] * response)
        mass = np.bincount(person, weights=weight)
        means = grouped[mass > 0] / mass[mass > 0, None]
        reference = means if reference is None else reference
        error = max(error, float(np.abs(means - reference).max(initial=0.0)))
    return error
