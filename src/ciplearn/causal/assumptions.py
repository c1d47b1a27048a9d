"""What a verdict rests on, and for each assumption the check that bears on it."""

from __future__ import annotations

from collections.abc import Set

from ciplearn._core.wording import as_set
from ciplearn.causal.conditions import Conditions


class Assumption(str):
    """An assumption as a sentence; a string with one more attribute.

    Attributes
    ----------
    sentence : str
        The assumption.
    check : str
        What can refute it, or show how much it matters.

    Examples
    --------
    >>> from ciplearn import CausalGraph
    >>> verdict = CausalGraph.from_edges("S -> A, S -> Y, A -> Y").criterion(outcome="Y", protected=["A"])
    >>> print(verdict.assumptions[0])
    The graph is right: no edge and no unobserved common cause is missing.
    >>> verdict.assumptions[0].check.startswith("ciplearn check")
    True
    """

    check: str

    def __new__(cls, sentence: str, check: str) -> Assumption:
        """Make the string and hang the check on it."""
        made = super().__new__(cls, sentence)
        made.check = check
        return made

    def __reduce__(self) -> tuple[type[Assumption], tuple[str, str]]:
        return Assumption, (self.sentence, self.check)

    @property
    def sentence(self) -> str:
        """The assumption as a plain string."""
        return str.__str__(self)


def assumptions(
    conditions: Conditions, s: Set[int], injective: tuple[str, ...], by_inputs: bool
) -> tuple[Assumption, ...]:
    """Return what the verdict with adjustment set `s` rests on."""
    protected, inputs = conditions.written(conditions.protected), as_set(conditions.question.inputs)
    rests = ", on which the certificate rests" if by_inputs else ""
    where = f" together with every value of {conditions.written(s)}" if s else ""
    right = conditions.written(conditions.exposures(s))
    found = [
        Assumption(
            "The graph is right: no edge and no unobserved common cause is missing.",
            "ciplearn check GRAPH --data TABLE (graph.falsify) can refute it but never prove it; sensitivity shows how "
            "much a wrong edge or a hidden common cause would matter.",
        ),
        Assumption(
            f"Overlap{rests}: every value that changing {protected} could give to {right} occurs{where}.",
            "audit counts the imagined rows that lie where there are no data.",
        ),
        Assumption(
            f"{conditions.predictor_name} is a function of {inputs} and of nothing else but independent noise.",
            "true of every model that receives these columns and no others; look at what predict is given.",
        ),
        Assumption(
            "The independence is exact: a small but positive dependence bounds no counterfactual difference by itself.",
            "independence_test on rows that training has not seen can refute it; variance_of_counterfactuals measures "
            "what is left.",
        ),
    ]
    if injective:
        found.append(
            Assumption(
                f"{as_set(injective)}: injective in the total noise, unobserved causes included, given their parents.",
                "no data can refute it; for discrete variables counterfactual_bounds shows what may happen without it.",
            )
        )
    return tuple(found)
