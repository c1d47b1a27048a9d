import pytest

from tests.pages import python_on


@pytest.mark.slow
def test_the_code_on_the_page_runs_and_says_what_it_claims(capsys):
    names: dict[str, object] = {}
    exec("\n".join(python_on("docs/counterfactuals.md")), names)
    printed = capsys.readouterr().out
    assert "VCF =" in printed
    assert "Model-based: estimated from 1000 rows." in printed
    assert "<title>Does the predicted Y depend on A?" in names["page"]
    assert names["scaled_rows"].max().max() == 1
