"""What is said of a graph, as values: independencies, which data can contradict, paths, findings and assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ciplearn._core.arguments import first
from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.dag import separated, smallest_separator
from ciplearn.causal.names import Names, as_names, in_order, unused

if TYPE_CHECKING:
    from ciplearn.causal.graph import CausalGraph

PREDICTOR = "Ŷ"
MOST_NAMES = 6  # names of a set in a sentence; signs name them all


def predictor_name(graph: CausalGraph) -> str:
    """Return the name under which Ŷ is shown: one that no node of the graph has."""
    return unused(PREDICTOR, graph.index)


@dataclass(frozen=True, init=False)
class Independence:
    """left ⊥ right | given: once `given` is known, `right` says nothing more about `left`.

    Names stand in natural order, so that statements with the same content are equal, hash alike and print alike.

    Attributes
    ----------
    right : tuple of str
        The variables that must say nothing more, (A ∪ W) ∖ S for the statement of a criterion.
    given : tuple of str
        The conditioning variables S.
    left : tuple of str
        The predictor Ŷ, unless the statement speaks of the graph's own nodes.

    Examples
    --------
    >>> from ciplearn import Independence
    >>> print(Independence(right=["L", "A"], given=["S"]))
    Ŷ ⊥ {A, L} | {S}
    """

    right: tuple[str, ...]
    given: tuple[str, ...]
    left: tuple[str, ...]

    def __init__(self, right: Names, given: Names = (), left: Names = PREDICTOR) -> None:
        for side, names in (("right", right), ("given", given), ("left", left)):
            object.__setattr__(self, side, in_order(as_names(names, side)))
        for side in ("right", "left"):
            if not getattr(self, side):
                why = f"An independence needs variables on both sides, but {side} is empty"
                raise InputError(f"{why}; name at least one.")
        for one, other in (("right", "given"), ("left", "right"), ("left", "given")):
            if both := set(getattr(self, one)) & set(getattr(self, other)):
                raise InputError(
                    f"The sides of an independence must not overlap, but {as_set(in_order(both))} is in {one} and in "
                    f"{other}; keep each name on one side."
                )

    def __str__(self) -> str:
        left = self.left[0] if len(self.left) == 1 else as_set(self.left)
        given = f" | {as_set(self.given)}" if self.given else ""
        return f"{left} ⊥ {as_set(self.right)}{given}"

    def in_words(self) -> str:
        """Say what `left` does: ``tells nothing about A and L among rows with the same S``; six names of many."""
        among = f" among rows with the same {as_list(self.given, MOST_NAMES)}" if self.given else ""
        return f"tells nothing about {as_list(self.right, MOST_NAMES)}{among}"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready data."""
        return {"left": list(self.left), "right": list(self.right), "given": list(self.given), "text": str(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Independence:
        """Read what `to_dict` wrote."""
        return cls(right=content["right"], given=content["given"], left=content["left"])


@dataclass(frozen=True)
class Path:
    """Nodes in order and the arrow between each and the next: ``→``, ``←``, ``↔`` or ``−``.

    >>> from ciplearn.causal import Path
    >>> print(Path(("A", "U", "Y"), ("←", "→")))
    A ← U → Y
    """

    nodes: tuple[str, ...]
    arrows: tuple[str, ...]

    def __str__(self) -> str:
        tail = "".join(f" {arrow} {node}" for arrow, node in zip(self.arrows, self.nodes[1:], strict=True))
        return self.nodes[0] + tail

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """Triples (node, arrow, next node)."""
        return tuple(zip(self.nodes, self.arrows, self.nodes[1:], strict=False))

    def to_list(self) -> list[str]:
        """Return nodes and arrows in turn, JSON-ready: a name may hold an arrow, so the text alone could be misread."""
        return [self.nodes[0], *(step for edge in self.edges for step in edge[1:])]

    @classmethod
    def from_list(cls, steps: Sequence[str]) -> Path:
        """Read what `to_list` wrote."""
        return cls(tuple(steps[::2]), tuple(steps[1::2]))


@dataclass(frozen=True)
class Finding:
    """One thing that speaks for or against the verdict.

    Attributes
    ----------
    condition : str
        ``"validity"``, ``"parents"``, ``"noise"``, ``"inputs"``, ``"paper"``, or ``"class"`` of undirected graphs.
    holds : bool
        Whether it speaks for the verdict.
    sentence : str
    paths : tuple of Path
        Those in the sentence.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> verdict = CausalGraph.from_edges("S -> A, S -> Y, A -> Y").criterion(outcome="Y", protected=["A"])
    >>> [(finding.condition, finding.holds) for finding in verdict.findings]
    [('validity', True), ('parents', True), ('paper', True)]
    """

    condition: str
    holds: bool
    sentence: str
    paths: tuple[Path, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready data."""
        walks = [path.to_list() for path in self.paths]
        return {**vars(self), "paths": [str(path) for path in self.paths], "walks": walks}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Finding:
        """Read what `to_dict` wrote."""
        paths = tuple(Path.from_list(walk) for walk in content["walks"])
        return cls(content["condition"], content["holds"], content["sentence"], paths)


class Assumption(str):
    """What a verdict rests on, as a sentence; a string with two more attributes.

    Attributes
    ----------
    sentence : str
    check : str
        What can refute it, or show how much it matters.
    key : str
        Which of them it is: "graph", "overlap", "inputs", "exact" or "injective".

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> verdict = CausalGraph.from_edges("S -> A, S -> Y, A -> Y").criterion(outcome="Y", protected=["A"])
    >>> print(verdict.assumptions[0])
    The graph is right: no edge and no unobserved common cause is missing.
    """

    check: str
    key: str = ""

    def __new__(cls, sentence: str, check: str, key: str = "") -> Assumption:
        """Hang the check and the key on the sentence."""
        assumption = super().__new__(cls, sentence)
        assumption.check, assumption.key = check, key
        return assumption

    def __reduce__(self) -> tuple[type[Assumption], tuple[str, str, str]]:
        return Assumption, (self.sentence, self.check, self.key)

    @property
    def sentence(self) -> str:
        """The assumption as a plain string."""
        return str.__str__(self)


def implied_independencies(graph: CausalGraph, limit: int | None) -> Iterator[Independence]:
    """Yield a ⊥ b | Z with a smallest observed Z for each pair of observed nodes that some observed set separates."""
    dag, observed = graph.dag(), sorted(graph.numbers(graph.observed))
    # Adjacent nodes are never separated; skipping them saves the search.
    apart = ((a, b) for a, b in combinations(observed, 2) if a not in dag.parents[b] and b not in dag.parents[a])
    cut = ((a, b, smallest_separator(dag, {a}, {b}, set(observed) - {a, b}, set())) for a, b in apart)
    return first((_between(graph, a, b, z) for a, b, z in cut if z is not None), limit)


def _between(graph: CausalGraph, a: int, b: int, z: Set[int]) -> Independence:
    return Independence(right=graph.names({b}), given=graph.names(z), left=graph.names({a}))


def local_independencies(graph: CausalGraph) -> Iterator[Independence]:
    """Yield v ⊥ u | parents of v for each observed v and each u before it in topological order that is no parent.

    Without latent nodes and bidirected edges this is the ordered local Markov property, pair by pair, from which the
    other independencies of the graph follow. Where the observed parents do not separate a pair, because a cause is not
    observed, a smallest observed set does it; a pair that none separates is left out.
    """
    dag = graph.dag()
    observed = graph.numbers(graph.observed)
    order = [node for node in dag.topological_order() or [] if node in observed]
    for rank, v in enumerate(order):
        parents = set(dag.parents[v]) & observed
        for u in (node for node in order[:rank] if node not in parents):
            enough = separated(dag, {u}, {v}, parents)
            z = parents if enough else smallest_separator(dag, {u}, {v}, observed - {u, v}, set())
            if z is not None:
                yield _between(graph, v, u, z)
