import re

from reproduction import sprites as dsprites
from tests.pages import python_on
from tests.reproduction.sprites.stand_in import write_original


def test_the_code_on_the_page_runs(capsys, tmp_path, monkeypatch):
    rendered, read, *rest = python_on("docs/images.md")
    names: dict[str, object] = {}
    exec("\n".join([rendered, *rest]), names)

    # Of the original's 737 280 pictures the file that stands in for it holds the first.
    monkeypatch.chdir(tmp_path)
    write_original(re.search(r'Archive\("(.*)"\)', read)[1])
    here = {"sprites": dsprites, "latents": dsprites.latents_of([0, 7])}
    exec(read, here)
    assert here["archive"].images(here["latents"]).shape == (2, 64, 64)
    assert "VCF =" in capsys.readouterr().out
    assert names["pictures"].shape == (2, 64, 64)
    assert str(names["model"].independence_) == "Ŷ ⊥ {color, orientation, scale, x_pos} | {shape, y_pos}"
