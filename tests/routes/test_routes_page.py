import numpy as np
import pytest

from tests.pages import ROOT, python_on

PAGE = ROOT / "docs" / "routes.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")


@pytest.mark.slow
def test_the_code_on_the_page_runs_and_says_what_it_claims(capsys):
    text = PAGE.read_text(encoding="utf-8")
    names = {}
    exec("\n".join(python_on("docs/routes.md")), names)
    printed = capsys.readouterr().out
    table = names["found"].table.set_index("name")

    # The table of the repair: error, difference between the groups, correlation with talent.
    for name in ("usual", "limited", "repaired"):
        said = names[name].predict(names["X"][["skill"]] if name == "usual" else names["X"])
        error, talent = np.mean((said - names["pay"]) ** 2), np.corrcoef(said, names["talent"])[0, 1]
        apart = said[names["group"] == "b"].mean() - said[names["group"] == "a"].mean()
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        assert row.split("|")[2:5] == [f" {figure:.2f} " for figure in (error, apart, talent)]
    assert names["found"].chosen == "independence of the protected alone, gamma 10"
    assert "Taken: independence of the protected alone, gamma 10." in printed

    # Where CF1 is a constant, the line only shrinks.
    free, line = table.loc["unconstrained"], table[table["kind"] == "line"]
    assert line["relative"].to_numpy() == pytest.approx(free["relative"], rel=1e-6)
    assert (line["vcf"] / free["vcf"]).to_numpy() == pytest.approx(line["share"].to_numpy(), rel=1e-4)

    # Two models with the same rows and opposite counterfactuals; the estimate is one of them, and passes its test.
    agreement = names["correlations"]
    assert np.sign(agreement[0, 1:]).tolist() == [-1, -1]
    words = " ".join(text.replace("> ", "").split())
    assert f"{agreement[0, 2]:.2f} with the first and {agreement[1, 2]:.2f} with the second" in words.replace("−", "-")
    assert names["scm"].misfits == ()
    assert names["scm"].ambiguities[0].sentence in words
