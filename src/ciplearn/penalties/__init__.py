"""Criteria of (conditional) independence, each an operator Q with penalty(ŷ) = ⟨K_Ŷ, Q⟩."""

from collections.abc import Callable

from ciplearn.penalties.conditional import CIRCE, HSCIC, ResidualHSCIC
from ciplearn.penalties.marginal import HSIC, MMD
from ciplearn.penalties.penalty import Operator, Penalty, Setting, StreamedOperator

# A penalty is registered by one line here, under its name on the command line; it can then be saved.
PENALTIES: dict[str, Callable[[], Penalty]] = {
    "residual-hscic": ResidualHSCIC,
    "hscic": HSCIC,
    "hscic-paper": HSCIC.paper,
    "circe": CIRCE,
    "hsic": HSIC,
    "mmd": MMD,
}

__all__ = ["CIRCE", "HSCIC", "HSIC", "MMD", "PENALTIES", "Penalty", "ResidualHSCIC"]
__all__ += ["Operator", "Setting", "StreamedOperator"]
