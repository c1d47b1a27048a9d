from types import SimpleNamespace

from ciplearn import audit
from ciplearn.datasets import applicants
from ciplearn.evaluation.conclusion import Floor, Limits, _untold, too_few_rows


def test_rows_that_were_too_few_are_not_said_to_do_when_doubled():
    unit = SimpleNamespace(amount=lambda value: f"{100 * value:.1f} points")
    floor = Floor(effect=0.046, moved=0.735, rows=800)
    said = _untold(SimpleNamespace(limit=0.05, unit=unit), floor, "sex", "")
    assert "made from half of 800 rows so as not to follow sex still moves by 4.6 points on average" in said
    assert said.endswith("More than 1\N{NARROW NO-BREAK SPACE}600 rows are needed.")


def test_both_numbers_of_rows_are_written_alike():
    unit = SimpleNamespace(amount=str)
    said = _untold(SimpleNamespace(limit=0.05, unit=unit), Floor(effect=0.04, moved=0.7, rows=1600), "sex", "")
    thousands = [f"{number}\N{NARROW NO-BREAK SPACE}{rest} rows" for number, rest in (("1", "600"), ("3", "200"))]
    assert all(rows in said for rows in thousands)


def test_rows_that_no_table_has_are_not_counted():
    unit = SimpleNamespace(amount=str)
    floor = Floor(effect=0.4, moved=0.7, rows=800)
    for limit in (1e-150, 1e-300, 5e-324):
        said = _untold(SimpleNamespace(limit=limit, unit=unit), floor, "sex", "")
        assert said.endswith("More rows than any table has are needed.")


def test_rows_that_are_too_few_for_any_model_to_pass_leave_one_that_moves_none_untold():
    world = applicants()
    people = world.sample(300, random_state=0)
    means = people.groupby("region")["income"].mean()
    few, more = (
        audit(
            lambda frame: frame["region"].map(means).astype(float), world, people, "income", ["sex"], n_points=n
        ).conclusion
        for n in (40, 80)
    )
    assert (few.state, more.state) == ("cannot be told", "passes")
    assert few.headline.startswith("No model can pass on 40 rows")
    assert few.advice == "Audit at least 73 rows."
    moved = audit(lambda frame: frame["hours"], world, people, "income", ["sex"], n_points=40).conclusion
    assert moved.state != "cannot be told"


def test_rows_that_leave_noise_open_are_not_said_to_be_too_few_for_any_model():
    few = SimpleNamespace(effects=SimpleNamespace(n_points=40), limits=Limits(), vcf=SimpleNamespace(n_draws=1))
    assert too_few_rows(few) is not None
    few.vcf.n_draws = 20
    assert too_few_rows(few) is None
