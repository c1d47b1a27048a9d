"""The two settings that are run side by side: the paper's, and what ciplearn does when nothing is said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from ciplearn.causal import CausalGraph, Independence
from ciplearn.estimators import CIPRegressor
from ciplearn.experiments.speed import paper_network
from ciplearn.penalties import HSCIC
from reproduction.cases import OUTCOME, PAPER_HSIC, PROTECTED, Case
from reproduction.in_batch import InBatchHSCIC

PAPER = "paper's penalty"
DEFAULT = "default"
METHODS = (PAPER, DEFAULT)


@dataclass(frozen=True)
class Training:
    """Adam on batches, as in the paper's appendix; the default takes its own learning rate and schedule."""

    epochs: int
    batch_size: int = 256
    learning_rate: float = 1e-3


def paper_baseline(kind: Any, graph: CausalGraph, inputs: int, training: Training, seed: int, **more: Any) -> Any:
    """Return an untrained baseline with the paper's network on some inputs, for a process on a CPU."""
    return kind(
        graph=graph,
        outcome=OUTCOME,
        protected=[PROTECTED],
        task="regression",
        module=partial(paper_network, inputs),
        hidden=(20,) * 8,
        **vars(training),
        schedule="constant",
        device="cpu",
        random_state=seed,
        **more,
    )


def predictor(
    method: str, case: Case, training: Training, device: str, independence: Independence | None = None
) -> CIPRegressor:
    """Return the untrained predictor of a method, for the rows of a case.

    The paper's: its kernels and ridge, solved anew on every batch, its network and its learning rate throughout. The
    default: nothing but the graph with its roles, or else an independence, and the length of training in batches is
    said. Gammas are plain weights of the penalty in both.
    """
    common: dict[str, Any] = {
        "inputs": case.inputs,
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "device": device,
    }
    if method == DEFAULT:
        roles = {"graph": case.scm.graph, "outcome": OUTCOME, "protected": [PROTECTED]}
        return CIPRegressor(
            **common, **(roles if independence is None else {"independence": independence}), gamma_scale=1.0
        )
    statement = independence or case.independence()
    common |= {"independence": statement, "learning_rate": training.learning_rate, "schedule": "constant"}
    common["module"] = partial(paper_network, len(case.inputs))
    if not statement.given:
        return CIPRegressor(**common, penalty=PAPER_HSIC)
    if device == "cuda":
        return CIPRegressor(**common, penalty=InBatchHSCIC.paper())
    return CIPRegressor(**common, penalty=HSCIC.paper(), prepare_once=False)
