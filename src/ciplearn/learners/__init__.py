"""Learners side by side: networks, boosted trees and linear models, each fitted by the same estimators."""

from ciplearn.estimators.learner import Learner, Linear, Network
from ciplearn.learners.boosted import Boosted

# A learner is registered by one line here.
LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Network, Boosted, Linear)}

__all__ = ["LEARNERS", "Boosted", "Learner", "Linear", "Network"]
