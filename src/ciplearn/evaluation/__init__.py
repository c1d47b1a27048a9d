"""Measuring a finished predictor: variance of counterfactuals, tests of independence, audits."""

from ciplearn.evaluation.auditing import Audit, Beside, audit
from ciplearn.evaluation.bounds import VCFBounds, vcf_bounds
from ciplearn.evaluation.conclusion import Check, Conclusion, Floor, Limits
from ciplearn.evaluation.effects import (
    CounterfactualEffect,
    FlipRate,
    PairedEffects,
    counterfactual_effect,
    flip_rate,
    paired_effects,
)
from ciplearn.evaluation.group_scores import GroupScores, group_scores
from ciplearn.evaluation.independence import IndependenceTest, independence_test
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.vcf_result import Flips, Overlap, VarianceOfCounterfactuals

__all__ = ["Audit", "Beside", "Check", "Conclusion", "CounterfactualEffect", "FlipRate", "Flips", "Floor"]
__all__ += ["GroupScores", "IndependenceTest", "Limits", "Overlap", "PairedEffects", "VCFBounds"]
__all__ += ["VarianceOfCounterfactuals", "audit", "counterfactual_effect", "flip_rate", "group_scores"]
__all__ += ["independence_test", "paired_effects", "variance_of_counterfactuals", "vcf_bounds"]
