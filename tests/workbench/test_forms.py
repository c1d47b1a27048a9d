"""What the panels Data and Train ask for fits the page, and says what is usual."""

import numpy as np
import pandas as pd
import pytest

from tests.workbench.browser import needs_browser

pytestmark = [needs_browser, pytest.mark.usefixtures("page")]

WIDE = ("birth_year", "parents_degree", "school_type", "rent")


def table(outcome):
    chance = np.random.default_rng(0)
    columns = {name: chance.normal(size=80).round(3) for name in WIDE} | {"rent": outcome}
    return pd.DataFrame(columns | {"school_type": chance.choice(["gymnasium", "other"], 80)})


def given(web, outcome, name="people.csv"):
    web.look(1280, 800)
    web.open_text(f"{' | '.join(WIDE)}")
    web.until(lambda: web.doc("editor.doc.nodes.length") == len(WIDE))
    web.drop(".drawing", name, table(outcome).to_csv(index=False))
    web.until(lambda: web.find("#cw-panel-data h3") and web.text("#cw-panel-data h3") == name)


def test_columns_of_a_table_need_no_sideways_scrolling(web):
    given(web, np.linspace(606.25, 1479.75, 80))
    web.wait("[aria-label='Kind of parents_degree']")
    assert web.run("const one = document.querySelector('table.columns').parentNode;"
                   "return one.scrollWidth <= one.clientWidth")  # fmt: skip
    assert "parents_degree" in web.text("table.columns")


@pytest.mark.parametrize("labels", [False, True])
def test_empty_limit_says_how_much_is_usual_and_of_what(web, labels):
    amounts = np.linspace(0.0, 100.0, 80)
    given(web, np.where(amounts > 50, "high", "low") if labels else amounts, f"people{int(labels)}.csv")
    for name, role in (("rent", "outcomes"), ("birth_year", "exposures")):
        web.tap(web.place(name))
        web.click(f".selection [data-key={role}]")
    web.wait("#cw-tab-train")
    web.click("#cw-tab-train")
    usual = "0.05" if labels else f"{0.1 * amounts.std():.3f}"
    place = "return document.querySelector('[data-key=amount]')?.placeholder"
    web.until(lambda: web.run(place) == f"{usual} as usual", 20)
    words = web.text(".usual")
    assert words.startswith("Of a probability: 0.05 is 5 points." if labels else "In the unit of rent.")
    web.click("[data-key='goal|vcf']")
    web.until(lambda: not web.find(".usual"))
