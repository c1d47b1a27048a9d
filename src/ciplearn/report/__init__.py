"""The report: one self-contained page about a predictor, for people who decide."""

from ciplearn.report.content import Report

__all__ = ["Report"]
