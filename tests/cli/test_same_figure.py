"""The figure that ``fit`` prints is the one that ``audit`` finds, on six kinds of table."""

import json

import numpy as np
import pandas as pd
import pytest

from ciplearn.cli.app import run

GRAPH = "A -> {L Y}, {L Z} -> Y"


def number(rows, draw, protected=None):
    """A number that follows A, of two labels or as it is given, and two other columns."""
    a = draw.integers(2, size=rows).astype(float) if protected is None else protected
    z, u, noise = draw.normal(size=(3, rows))
    low = 1.5 * a + u
    return pd.DataFrame({"A": a, "Z": z, "L": low, "Y": low + 0.5 * a + z + 0.3 * noise})


def labelled_a(table):
    return table.assign(A=np.where(table["A"] > 0, "f", "m"))


def labelled_y(table, labels):
    return table.assign(Y=pd.qcut(table["Y"], len(labels), labels=labels).astype(str))


def with_causes(rows, draw):
    region = draw.integers(3, size=rows)
    a = (draw.random(rows) < 0.25 + 0.25 * region).astype(float)
    return labelled_a(number(rows, draw, a)).assign(R=np.array(list("abc"))[region])


TABLES = {
    "a number": (lambda draw: labelled_a(number(400, draw)), GRAPH),
    "two labels": (lambda draw: labelled_a(labelled_y(number(400, draw), ["no", "yes"])), GRAPH),
    "three labels": (lambda draw: labelled_a(labelled_y(number(400, draw), ["low", "mid", "top"])), GRAPH),
    "a protected number": (lambda draw: number(400, draw, draw.normal(size=400)), GRAPH),
    "a protected column with causes": (lambda draw: with_causes(400, draw), f"R -> {{A L}}, {GRAPH}"),
    "few rows": (lambda draw: labelled_a(number(120, draw)), GRAPH),
}


@pytest.mark.parametrize("kind", TABLES)
def test_fit_prints_what_an_audit_finds(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, graph = TABLES[kind]
    make(np.random.default_rng(0)).to_csv("t.csv", index=False)
    call = ["fit", "t.csv", "--graph", graph, "--outcome=Y", "--protected=A", "--learner=linear", "--out=fitted"]
    assert run([*call, "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    run(["audit", "fitted", "t.csv", "--doubt=0", "--out=r.html", "--json"])
    audited = json.loads(capsys.readouterr().out)
    for figure in ("vcf", "typical", "scores", "limit", "conclusion", "before"):
        assert fitted["audit"][figure] == audited[figure], figure
    # Other rows judged the choice: the bound that it went by holds for what the audit finds, up to its interval.
    comparison = fitted["comparison"]
    assert comparison["limit"] == audited["limit"]
    (chosen,) = (row for row in comparison["candidates"] if row["name"] == comparison["chosen"])
    effects = [pair for pair in audited["effects"]["pairs"] if pair["model"] == "this model"]
    assert max(min(abs(pair["effect_low"]), abs(pair["effect_high"])) for pair in effects) <= chosen["effect_end"]
