"""ciplearn: counterfactually invariant prediction.

Public names load on first use, so that ``import ciplearn`` and the graph half of the library never wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> the room that holds it.
_ROOM_OF = {
    "CausalGraph": "ciplearn.causal",
    "Independence": "ciplearn.causal",
    "Verdict": "ciplearn.causal",
    "CIPClassifier": "ciplearn.estimators",
    "CIPRegressor": "ciplearn.estimators",
    "CIRCE": "ciplearn.penalties",
    "Categorical": "ciplearn.kernels",
    "Frontier": "ciplearn.learning",
    "FrontierDisplay": "ciplearn.display",
    "GammaSearch": "ciplearn.estimators",
    "Gaussian": "ciplearn.kernels",
    "HSCIC": "ciplearn.penalties",
    "HSIC": "ciplearn.penalties",
    "Laplace": "ciplearn.kernels",
    "Linear": "ciplearn.kernels",
    "MMD": "ciplearn.penalties",
    "Nystroem": "ciplearn.kernels",
    "Product": "ciplearn.kernels",
    "RandomFourier": "ciplearn.kernels",
    "ResidualHSCIC": "ciplearn.penalties",
    "StructuralCausalModel": "ciplearn.scm",
    "Sum": "ciplearn.kernels",
    "audit": "ciplearn.evaluation",
    "counterfactual_bounds": "ciplearn.doubt",
    "fit_scm": "ciplearn.scm",
    "frontier": "ciplearn.estimators",
    "independence_test": "ciplearn.evaluation",
    "variance_of_counterfactuals": "ciplearn.evaluation",
}

# Rooms that are public as modules.
_MODULES = ("baselines", "datasets")

__all__ = [*sorted((*_ROOM_OF, *_MODULES)), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(_ROOM_OF[name]), name)
    if name in _MODULES:
        return import_module(f"ciplearn.{name}")
    raise AttributeError(f"module 'ciplearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
