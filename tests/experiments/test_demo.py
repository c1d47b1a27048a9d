import pytest

from ciplearn._core.errors import InputError
from ciplearn.experiments.demo import GAMMAS, SEEDS, run_demo


def test_demo_trains_measures_draws_and_says_what_was_seen(tmp_path):
    said = []
    found = run_demo(tmp_path / "out", rows=500, epochs=12, say=said.append)
    assert "Ŷ ⊥ {A, L} | {Z}" in said[0]
    assert len(found.frontier.points) == len(GAMMAS) * len(SEEDS)
    table = found.frontier.summary()
    assert table["vcf"].iloc[-1] < 0.3 * table["vcf"].iloc[0]
    assert found.baselines["CF1"][0] == 0
    assert found.baselines["naive"][0] > 0
    assert found.chosen in GAMMAS
    assert len(found.sentences()) == 6
    assert all(path.stat().st_size > 0 for path in found.files)
    assert found.files[0].read_bytes().startswith(b"\x89PNG")


def test_folder_that_cannot_be_made_is_named(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(InputError, match="cannot be made"):
        run_demo(blocker / "out")
