"""Measuring a finished predictor: variance of counterfactuals, tests of independence, audits."""

from ciplearn.evaluation.effects import CounterfactualEffect, FlipRate, counterfactual_effect, flip_rate
from ciplearn.evaluation.overlap import Overlap
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals

__all__ = [
    "CounterfactualEffect",
    "FlipRate",
    "Overlap",
    "VarianceOfCounterfactuals",
    "counterfactual_effect",
    "flip_rate",
    "variance_of_counterfactuals",
]
