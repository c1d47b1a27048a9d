import pytest

from ciplearn._core.answers import KeptAnswers
from ciplearn._core.errors import InputError


def test_answers_are_found_again_and_a_line_cut_short_is_forgotten(tmp_path):
    path = tmp_path / "answers"
    kept = KeptAnswers(path, "q")
    kept.add("a", {"vcf": 1.5, "holds": True})
    kept.add("b", {"vcf": float("nan"), "holds": False})
    path.write_bytes(path.read_bytes() + b'{"key": "c", "dig')
    again = KeptAnswers(path, "q")
    assert list(again.known) == ["a", "b"]
    assert again.known["a"] == {"vcf": 1.5, "holds": True}
    again.add("c", {"vcf": 2.0, "holds": True})
    assert list(KeptAnswers(path, "q").known) == ["a", "b", "c"]


def test_a_file_of_another_question_is_refused(tmp_path):
    path = tmp_path / "answers"
    KeptAnswers(path, "q").add("a", {"vcf": 1.5})
    with pytest.raises(InputError, match="another question"):
        KeptAnswers(path, "other")
    path.write_text("no json\n")
    with pytest.raises(InputError, match="no answers of this kind"):
        KeptAnswers(path, "q")


def test_without_a_file_nothing_is_written():
    kept = KeptAnswers(None, "q")
    kept.add("a", {"vcf": 1.0})
    assert kept.known == {"a": {"vcf": 1.0}}
