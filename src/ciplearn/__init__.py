"""ciplearn: counterfactually invariant prediction.

Public names load on first use, so that ``import ciplearn`` and the graph half of the library never wait for torch. Type
checkers and editors, which run nothing, read the same names from the imports below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ciplearn import baselines as baselines
    from ciplearn import datasets as datasets
    from ciplearn import errors as errors
    from ciplearn import learners as learners
    from ciplearn import learning as learning
    from ciplearn import scm as scm
    from ciplearn.causal import CausalGraph as CausalGraph
    from ciplearn.causal import Independence as Independence
    from ciplearn.causal import Verdict as Verdict
    from ciplearn.display import FrontierDisplay as FrontierDisplay
    from ciplearn.doubt import counterfactual_bounds as counterfactual_bounds
    from ciplearn.doubt import sensitivity as sensitivity
    from ciplearn.estimators import CIPClassifier as CIPClassifier
    from ciplearn.estimators import CIPRegressor as CIPRegressor
    from ciplearn.estimators import GammaSearch as GammaSearch
    from ciplearn.estimators.frontier import frontier as frontier
    from ciplearn.estimators.problem import Problem as Problem
    from ciplearn.evaluation import audit as audit
    from ciplearn.evaluation import counterfactual_effect as counterfactual_effect
    from ciplearn.evaluation import flip_rate as flip_rate
    from ciplearn.evaluation import group_scores as group_scores
    from ciplearn.evaluation import independence_test as independence_test
    from ciplearn.evaluation import paired_effects as paired_effects
    from ciplearn.evaluation import variance_of_counterfactuals as variance_of_counterfactuals
    from ciplearn.evaluation import vcf_bounds as vcf_bounds
    from ciplearn.kernels import Categorical as Categorical
    from ciplearn.kernels import Gaussian as Gaussian
    from ciplearn.kernels import Laplace as Laplace
    from ciplearn.kernels import Linear as Linear
    from ciplearn.kernels import Nystroem as Nystroem
    from ciplearn.kernels import Product as Product
    from ciplearn.kernels import RandomFourier as RandomFourier
    from ciplearn.kernels import Sum as Sum
    from ciplearn.learning import Frontier as Frontier
    from ciplearn.penalties import CIRCE as CIRCE
    from ciplearn.penalties import HSCIC as HSCIC
    from ciplearn.penalties import HSIC as HSIC
    from ciplearn.penalties import MMD as MMD
    from ciplearn.penalties import ResidualHSCIC as ResidualHSCIC
    from ciplearn.repairing import Repaired as Repaired
    from ciplearn.repairing import load_model as load_model
    from ciplearn.repairing import load_repaired as load_repaired
    from ciplearn.repairing import save_model as save_model
    from ciplearn.repairing.flow import repair as repair
    from ciplearn.report import Report as Report
    from ciplearn.routes import compare_routes as compare_routes
    from ciplearn.saving import export_onnx as export_onnx
    from ciplearn.scm import StructuralCausalModel as StructuralCausalModel
    from ciplearn.scm import fit_scm as fit_scm

__version__ = "0.3.0"

# Room -> the public names that it holds.
_NAMES: dict[str, tuple[str, ...]] = {
    "causal": ("CausalGraph", "Independence", "Verdict"),
    "display": ("FrontierDisplay",),
    "doubt": ("counterfactual_bounds", "sensitivity"),
    "estimators": ("CIPClassifier", "CIPRegressor", "GammaSearch", "Problem", "frontier"),
    "evaluation": (
        "audit",
        "counterfactual_effect",
        "flip_rate",
        "group_scores",
        "independence_test",
        "paired_effects",
        "variance_of_counterfactuals",
        "vcf_bounds",
    ),
    "kernels": ("Categorical", "Gaussian", "Laplace", "Linear", "Nystroem", "Product", "RandomFourier", "Sum"),
    "learning": ("Frontier",),
    "penalties": ("CIRCE", "HSCIC", "HSIC", "MMD", "ResidualHSCIC"),
    "repairing": ("Repaired", "load_model", "load_repaired", "repair", "save_model"),
    "report": ("Report",),
    "routes": ("compare_routes",),
    "saving": ("export_onnx",),
    "scm": ("StructuralCausalModel", "fit_scm"),
}

# Modules that are public themselves.
_MODULES = ("baselines", "datasets", "errors", "learners", "learning", "scm")

_ROOM_OF = {name: f"ciplearn.{room}" for room, names in _NAMES.items() for name in names}

__all__ = [*sorted((*_ROOM_OF, *_MODULES)), "__version__"]


if not TYPE_CHECKING:
    # Hidden from type checkers, for which a module with __getattr__ has every name.
    def __getattr__(name: str) -> Any:
        if name in _ROOM_OF:
            return getattr(import_module(_ROOM_OF[name]), name)
        if name in _MODULES:
            return import_module(f"ciplearn.{name}")
        raise AttributeError(f"module 'ciplearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
