"""Abduction from a context: the noise behind points of which some columns are known and the others are left open.

VCF as the paper defines it conditions on W [quinzan2024]. The inner mean then runs over every noise that fits W = w, be
it that of a latent node or that of a column that W leaves out.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.random import Generator

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.scm import StructuralCausalModel, Units
from ciplearn.scm.hidden_parents import draw_hidden
from ciplearn.scm.kinds import Array, read_nodes
from ciplearn.scm.model import DEFAULT_CANDIDATES


def leaves_nothing_out(graph: CausalGraph, context: Collection[str], needed: Collection[str]) -> bool:
    """Whether the context holds every observed node that it, or what is needed, descends from."""
    return graph.ancestors([*context, *needed]) & set(graph.observed) <= set(context)


def read_by_encoders(scm: StructuralCausalModel) -> set[str]:
    """Return the nodes that latent nodes are read off: without one of them nothing is known of these."""
    encoders = (scm.mechanisms[node] for node in scm.graph.latent)
    return {name for encoder in encoders for name in getattr(encoder, "evidence", ())}


def context_that_can_be_drawn_from(
    scm: StructuralCausalModel, rows: pd.DataFrame, context: Collection[str]
) -> tuple[str, ...]:
    """Return the context, with its observed ancestors where they cannot be drawn given the context alone.

    Drawing them takes mechanisms that know how likely their values are, which not all do. What latent nodes are read
    off, be it the outcome, is always part of it.
    """
    graph = scm.graph
    context = list(dict.fromkeys([*context, *sorted(read_by_encoders(scm))]))
    if leaves_nothing_out(graph, context, ()):
        return tuple(context)
    known = read_nodes(rows.head(2), scm.kinds, [node for node in context if set(scm.columns([node])) <= set(rows)])
    try:
        draw_hidden(graph, scm.mechanisms, known, 1, DEFAULT_CANDIDATES, np.random.default_rng(0))
    except InputError:
        return tuple(node for node in graph.observed if node in graph.ancestors(context))
    return tuple(context)


def units_given(
    scm: StructuralCausalModel,
    rows: pd.DataFrame,
    context: Collection[str],
    needed: Collection[str],
    reached: Collection[str],
    n_draws: int,
    generator: Generator,
) -> Units:
    """Draw values and noise of the nodes that are needed from their law given the context.

    Parameters
    ----------
    scm : StructuralCausalModel
    rows : DataFrame
        The context's columns, all of them.
    context, needed, reached : collections of nodes
        What is known; what predictors read, with all ancestors; and the part of it whose noise is wanted.
    n_draws : int
    generator : Generator

    Notes
    -----
    Ancestors of the context that are not in it are drawn by weighting (`ciplearn.scm.hidden_parents`); what descends
    from the context, or has nothing to do with it, is drawn from its mechanism.
    """
    known = read_nodes(rows, scm.kinds, context)
    hidden = draw_hidden(scm.graph, scm.mechanisms, known, n_draws, DEFAULT_CANDIDATES, generator) if known else None
    values: dict[str, Array] = {node: np.repeat(array, n_draws, axis=0) for node, array in known.items()}
    noise: dict[str, Array] = {}
    if hidden is not None:
        values |= hidden.values
        noise |= hidden.noise
    n = len(rows) * n_draws
    for node in scm.graph.topological_order():
        if node not in needed or node in noise:
            continue
        mechanism = scm.mechanisms[node]
        parents = {parent: values[parent] for parent in scm.graph.parents(node) if parent in values}
        if node not in values:
            noise[node] = mechanism.draw(n, generator)
            values[node] = mechanism.evaluate(parents, noise[node])
        elif node in reached:
            noise[node] = mechanism.posterior(parents, values[node], generator)
    effective = None if hidden is None else hidden.effective
    return Units(values, noise, rows.index, n_draws, exact=False, effective_draws=effective)
