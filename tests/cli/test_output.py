import json
import math

from ciplearn.cli.output import say_json


def test_numbers_that_json_does_not_have_are_null(capsys):
    say_json({"vcf": math.nan, "rows": [(1.5, math.inf), {"Ŷ": -math.inf}], "n": 3, "holds": True})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"vcf": None, "rows": [[1.5, None], {"Ŷ": None}], "n": 3, "holds": True}
    assert "Ŷ" in printed
