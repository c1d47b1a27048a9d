"""The two settings that are run side by side: the paper's, and what ciplearn does when nothing is said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from ciplearn.causal import Independence
from ciplearn.estimators import CIPRegressor
from ciplearn.experiments.reproduction.cases import PAPER_HSIC
from ciplearn.experiments.reproduction.in_batch import InBatchHSCIC
from ciplearn.experiments.speed import paper_network
from ciplearn.penalties import HSCIC

PAPER = "paper's penalty"
DEFAULT = "default"
METHODS = (PAPER, DEFAULT)


@dataclass(frozen=True)
class Training:
    """Adam on batches, as in the paper's appendix."""

    epochs: int
    batch_size: int = 256
    learning_rate: float = 1e-3


def predictor(
    method: str, independence: Independence, inputs: list[str], training: Training, device: str
) -> CIPRegressor:
    """Return the untrained predictor of a method, for rows with the columns ``inputs``.

    The paper's: its kernels and ridge, solved anew on every batch, and its network. The default: nothing but the
    independence and the length of training is said. Gammas are plain weights of the penalty in both.
    """
    common: dict[str, Any] = {
        "independence": independence,
        "inputs": inputs,
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "learning_rate": training.learning_rate,
        "device": device,
    }
    if method == DEFAULT:
        return CIPRegressor(**common, gamma_scale=1.0)
    common["schedule"] = "constant"
    network = partial(paper_network, len(inputs))
    if not independence.given:
        return CIPRegressor(**common, module=network, penalty=PAPER_HSIC)
    if device == "cuda":
        return CIPRegressor(**common, module=network, penalty=InBatchHSCIC.paper())
    return CIPRegressor(**common, module=network, penalty=HSCIC.paper(), prepare_once=False)
