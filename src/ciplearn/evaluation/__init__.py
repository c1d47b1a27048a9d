"""Measuring a finished predictor: variance of counterfactuals, tests of independence, audits."""

from ciplearn.evaluation.auditing import Audit, audit
from ciplearn.evaluation.effects import CounterfactualEffect, FlipRate, counterfactual_effect, flip_rate
from ciplearn.evaluation.independence import IndependenceTest, independence_test
from ciplearn.evaluation.overlap import Overlap
from ciplearn.evaluation.vcf import variance_of_counterfactuals
from ciplearn.evaluation.vcf_result import VarianceOfCounterfactuals

__all__ = [
    "Audit",
    "CounterfactualEffect",
    "FlipRate",
    "IndependenceTest",
    "Overlap",
    "VarianceOfCounterfactuals",
    "audit",
    "counterfactual_effect",
    "flip_rate",
    "independence_test",
    "variance_of_counterfactuals",
]
