"""The interval of VCF covers the truth as often as it says, in the processes of `benchmarks/vcf_coverage.py`."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "vcf_coverage.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("vcf_coverage", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_interval_is_not_blind_to_the_law_of_a(script):
    # All points have the same variance here: an interval over points alone would have no width.
    covered, _, width = script.coverage("normal", repetitions=40)
    assert covered >= 0.85
    assert 0.25 < width < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "heteroscedastic", "skewed", "very skewed", "categorical"])
def test_coverage_lies_within_two_points_of_95_per_cent(script, name):
    assert 0.93 <= script.coverage(name, repetitions=1000)[0] <= 0.97


@pytest.mark.slow
def test_coverage_holds_where_values_of_a_are_drawn(script):
    # 300 rows with 300 values of A, of which every point gets 60.
    assert 0.93 <= script.coverage("skewed", repetitions=1000, n_interventions=60)[0] <= 0.97
