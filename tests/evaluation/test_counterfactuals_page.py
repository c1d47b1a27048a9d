import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "counterfactuals.md"


def test_the_code_on_the_page_runs_and_says_what_it_claims(capsys):
    names: dict[str, object] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)), names)
    printed = capsys.readouterr().out
    assert "VCF =" in printed
    assert "Model-based: estimated from 1000 rows." in printed
    assert "<title>Predicting Y, and A" in names["page"]
    assert names["scaled_rows"].max().max() == 1
