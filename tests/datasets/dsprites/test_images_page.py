import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "images.md"


def test_the_code_on_the_page_runs(capsys):
    names: dict[str, object] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)), names)
    assert "VCF =" in capsys.readouterr().out
    assert names["pictures"].shape == (2, 64, 64)
    assert str(names["model"].independence_) == "Ŷ ⊥ {color, orientation, scale, x_pos} | {shape, y_pos}"
