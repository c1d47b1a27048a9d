"""Graphs one click away: the paper's, and well-known ones of the field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.causal import CausalGraph
from ciplearn.workbench.document import Document


@dataclass(frozen=True)
class Example:
    """A graph in DAGitty's notation, with a name, a sentence, and whether a table can be drawn for it."""

    name: str
    title: str
    about: str
    text: str
    context: tuple[str, ...] | None = None
    has_table: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what a list of examples shows."""
        return {"name": self.name, "title": self.title, "about": self.about, "has_table": self.has_table}

    def document(self) -> Document:
        """Return the drawing."""
        return Document(CausalGraph.from_dagitty(self.text), self.context)


EXAMPLES = (
    Example(
        "demo",
        "The demo: a bank's applicants",
        "The bank predicts income; sex must not influence the prediction. Comes with 8000 made-up people to train on.",
        'dag { region [pos="0,0"] age [pos="1,0"] sex [exposure,pos="1,2"] training [pos="2,0.4"] '
        'hours [pos="2,1.6"] income [outcome,pos="3,1"] '
        "region -> {age training income} {age sex} -> {training hours income} {training hours} -> income }",
        has_table=True,
    ),
    Example(
        "first",
        "The paper's first synthetic case",
        "Z confounds, A acts on Y directly and by way of L.",
        'dag { Z [pos="0,0"] A [exposure,pos="0,1.4"] L [pos="1.3,0.7"] Y [outcome,pos="2.6,0.7"] '
        "Z -> {A L Y} A -> L -> Y A -> Y }",
    ),
    Example(
        "loan",
        "A hidden cause, and how to repair it",
        "Wealth moves region and income, and nobody has measured it: the criterion fails, and says what would help.",
        "dag { region [exposure] loan [outcome] wealth [latent] wealth -> {region income} region -> income -> loan "
        "age -> {income loan} }",
        context=("age", "region"),
    ),
    Example(
        "mediator",
        "The paper's figure (a)",
        "A mediator L with a confounder S: the criterion holds given S.",
        "dag { A [exposure] Y [outcome] A -> L -> Y S -> {L Y} A -> Y }",
    ),
    Example(
        "causal",
        "Causal direction",
        "Features in three parts and a hidden confounder of A and Y.",
        "dag { A [exposure] Y [outcome] A -> X∧ -> Y A -> X_Y⊥ X∧ -> X_Y⊥ X_A⊥ -> {X∧ Y} A <-> Y }",
    ),
    Example(
        "anticausal",
        "Anti-causal direction",
        "The features are effects of Y, which the statement therefore conditions on.",
        "dag { A [exposure] Y [outcome] Y -> {X_A⊥ X∧} A -> {X∧ X_Y⊥} A <-> Y }",
    ),
    Example(
        "adult",
        "Income in blocks",
        "Adult: age and sex, marital status, education, work and income, with unobserved causes.",
        "dag { A [exposure] Y [outcome] H_m [latent] H_d [latent] H_r [latent] A -> {M D R Y} M -> {D R Y} D -> {R Y} "
        "R -> Y C -> {M D R Y} H_m -> M H_d -> D H_r -> R }",
    ),
    Example(
        "mbias",
        "M-bias",
        "M is an effect of two hidden causes: for the effect of A on Y, adjusting for it is a famous trap.",
        "dag { A [exposure] Y [outcome] U1 [latent] U2 [latent] U1 -> {A M} U2 -> {M Y} A -> Y }",
    ),
    Example(
        "napkin",
        "The napkin",
        "A graph in which no adjustment set identifies the effect.",
        "dag { A [exposure] Y [outcome] W -> Z -> A -> Y W <-> A W <-> Y }",
    ),
)


def example(name: Any) -> Example:
    """Return an example by its name."""
    by_name = {one.name: one for one in EXAMPLES}
    if name not in by_name:
        raise InputError(f"There is no example {name!r}; choose one of {', '.join(by_name)}.")
    return by_name[name]
