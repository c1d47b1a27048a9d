import json
import math

from ciplearn.cli.output import NOTED, note, say_json


def test_numbers_that_json_does_not_have_are_null(capsys):
    say_json({"vcf": math.nan, "rows": [(1.5, math.inf), {"Ŷ": -math.inf}], "n": 3, "holds": True})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"vcf": None, "rows": [[1.5, None], {"Ŷ": None}], "n": 3, "holds": True}
    assert "Ŷ" in printed


def test_a_note_is_said_once_whatever_counts_it_has(capsys):
    NOTED.clear()
    for count in (1, 211, 86):
        note(f"Column 'job' holds levels that training never saw: 'pilot' in {count} rows.")
    note("Column 'town' holds levels that training never saw: 'Ulm' in 1 rows.")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("'")[1] for line in lines] == ["job", "town"]
