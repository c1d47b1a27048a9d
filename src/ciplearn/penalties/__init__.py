"""Criteria of (conditional) independence, each an operator Q with penalty(ŷ) = ⟨K_Ŷ, Q⟩."""

from ciplearn.penalties.base import Penalty
from ciplearn.penalties.circe import CIRCE
from ciplearn.penalties.hscic import HSCIC
from ciplearn.penalties.hsic import HSIC
from ciplearn.penalties.mmd import MMD
from ciplearn.penalties.operator import Operator, Setting
from ciplearn.penalties.residual_hscic import ResidualHSCIC
from ciplearn.penalties.streamed_operator import StreamedOperator

__all__ = ["CIRCE", "HSCIC", "HSIC", "MMD", "Operator", "Penalty", "ResidualHSCIC", "Setting", "StreamedOperator"]
