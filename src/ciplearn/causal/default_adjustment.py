"""The adjustment set that the criterion takes when none is given.

Moving a node of the context from X into S only weakens what Ŷ ⊥ X | S demands, so the largest S is wanted. Write
T = A ∪ W. Sets S inside the context and their complements X = T ∖ S are two names for one choice, and the choice has
an answer in linear time:

*Suppose that some valid set exists. Then X, holding A, is free of forbidden nodes, T ∩ forbidden(X) ⊆ X, exactly when
every node of T that descends from X and has a directed path to Ŷ without inner nodes in T is in X.* The one other way
to be forbidden is to descend from a node m outside T on a path from X to Ŷ around T. A node of T below such an m is
forbidden if it is in S and has the open path ← m → Ŷ if it is in X, so then nothing is valid.

Such sets X are closed under intersection, so there is a smallest X and a largest S. Whether a node of T has an open
proper non-causal path to Ŷ does not depend on how T is split, because a collider with a descendant in T is either
opened by S or is the start of another such path from X. So a smaller X only has fewer bad paths, and a smaller R: the
largest S certifies whenever any S inside the context does.

Nodes outside T may be added to S. That leaves X alone, so the same X stays best, and what remains is to add the parents
that R asks for and then as few nodes as possible: a smallest separator. The outcome itself is the last resort; it is
known in training, which is all that the penalty needs.

Where no set certifies by its paths, one may certify by the inputs: the largest set inside the context holds no input
that descends from A, so all that is missing is the inputs outside T, if A changes none of those. A valid set is
preferred here too, because with a valid set a small dependence is a small effect of an intervention.
"""

from __future__ import annotations

from collections.abc import Set

from ciplearn.causal.conditions import Conditions


def largest_inside(conditions: Conditions) -> frozenset[int]:
    """Return the largest S ⊆ W ∖ A that can be valid: T without A and without what carries A's effect to Ŷ."""
    dag, known = conditions.dag, conditions.known
    free_to_predictor = dag.ancestors((conditions.predictor,), avoiding=known)
    carriers = {node for node in known & conditions.affected if not free_to_predictor.isdisjoint(dag.children[node])}
    return known - conditions.protected - carriers


def default_adjustment(conditions: Conditions) -> frozenset[int]:
    """Return the adjustment set of choice: a certifying one whenever there is one.

    In this order: the largest set inside the context; the same with as few observed nodes from outside as possible; the
    same with the outcome allowed too; a set that certifies by the inputs, valid if it can be. Where nothing certifies,
    a set that is valid at least, else the largest inside.
    """
    inside = largest_inside(conditions)
    if conditions.certifies_by_paths(inside):
        return inside
    outside = conditions.observed - conditions.known
    parents = frozenset(missing for _, missing in conditions.unexplained(inside))
    inputs = conditions.inputs - conditions.known
    required_inputs = inputs if inputs.isdisjoint(conditions.affected) else frozenset[int]()
    for required in (parents, required_inputs):
        for allowed in (outside - {conditions.outcome}, outside):
            found = _extended(conditions, inside, allowed, required)
            if found is not None:
                return found
    return inside | required_inputs


def some_set_certifies(conditions: Conditions) -> bool:
    """Tell whether `default_adjustment` certifies, without finding it: one separation at most, so linear."""
    if (conditions.inputs - conditions.known).isdisjoint(conditions.affected):
        return True
    inside = largest_inside(conditions)
    parents = {missing for _, missing in conditions.unexplained(inside)}
    outside = conditions.observed - conditions.known
    return parents <= outside and conditions.adjustment(inside).exists(outside | inside, inside | parents)


def _extended(
    conditions: Conditions, inside: frozenset[int], allowed: Set[int], required: frozenset[int]
) -> frozenset[int] | None:
    if not required <= allowed:
        return None
    found = conditions.adjustment(inside).smallest(allowed | inside, inside | required)
    return None if found is None else frozenset(found)
