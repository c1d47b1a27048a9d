from ciplearn import baselines
from tests.pages import ROOT, python_on

PAGE = "docs/baselines.md"


def test_the_code_on_the_page_runs_and_cf1_has_no_variance(capsys):
    exec("\n".join(python_on(PAGE)), {})
    naive, cf1, cf2 = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (naive[0], cf1[0], cf2[0]) == ("NaivePredictor", "CF1", "CF2")
    assert float(cf1[-1]) == 0 < min(float(naive[-1]), float(cf2[-1]))


def test_every_baseline_is_on_the_page():
    assert [name for name in baselines.__all__ if f"| `{name}` |" not in (ROOT / PAGE).read_text()] == []
