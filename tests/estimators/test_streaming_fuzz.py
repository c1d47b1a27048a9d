"""Whatever a table holds and however it is cut into files, a fit on the files is the fit on the rows in memory."""

import itertools
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ciplearn import CIPClassifier, CIPRegressor
from ciplearn._core.errors import CiplearnError

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

# Hypothesis draws as many tables as CIPLEARN_FUZZ says.
EXAMPLES = int(os.environ.get("CIPLEARN_FUZZ", "30"))

NUMBERS = {
    "amounts": st.floats(-1e6, 1e6, allow_subnormal=False),
    "counts": st.integers(-50, 10**9),
    "tiny": st.floats(-1e-200, 1e-200),
    "same": st.just(3.5),
    "two": st.sampled_from([0, 1]),
    "large": st.sampled_from([2**53, 2**53 + 2, 1e300, -1e300]),
}
LABELS = {
    "letters": st.sampled_from(["u", "v", "w"]),
    "words": st.text("abc é,;\"'\n", min_size=1, max_size=4).filter(lambda text: text.strip() == text),
    "alone": st.just("all"),
}


@st.composite
def tables(draw):
    """Rows of a protected column, two inputs and an outcome, with gaps; and where they are cut."""
    n = draw(st.integers(4, 30))
    kinds = draw(st.fixed_dictionaries({name: st.sampled_from([*NUMBERS, *LABELS]) for name in ("A", "L", "S")}))
    kinds["Y"] = draw(st.sampled_from(["amounts", "counts", "letters", "two"]))
    columns = {}
    for name, kind in kinds.items():
        cells = st.lists((NUMBERS | LABELS)[kind], min_size=n, max_size=n)
        columns[name] = pd.Series(draw(cells), dtype=object if kind in LABELS else float)
        if draw(st.booleans()):
            gaps = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            columns[name] = columns[name].mask(gaps)
    cuts = sorted(draw(st.sets(st.integers(1, n - 1), max_size=3)))
    return pd.DataFrame(columns), [0, *cuts, n]


def written(folder, table, cuts, ending):
    for place, (start, end) in enumerate(itertools.pairwise(cuts)):
        part, path = table.iloc[start:end], Path(folder) / f"{place}.{ending}"
        if ending == "csv":
            part.to_csv(path, index=False)
            continue
        import pyarrow
        from pyarrow import parquet

        # A part may have gaps only in a column, whose type all files share.
        text = {name: pyarrow.string() for name in part if part[name].dtype == object}
        schema = pyarrow.schema([(name, text.get(name, pyarrow.float64())) for name in part])
        parquet.write_table(pyarrow.Table.from_pandas(part, schema, preserve_index=False), path)


def outcome_of(work):
    """What comes of a fit: a refusal, or the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return work()
        except CiplearnError:
            return None


@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(["csv", "parquet"]), st.sampled_from(["drop", "impute", "error"]))
def test_a_fit_on_files_is_the_fit_on_their_rows(rows, ending, missing):
    table, cuts = rows
    kind = CIPClassifier if table["Y"].dtype == object else CIPRegressor
    how = {"protected": ["A"], "missing": missing, "gamma": 0.0, "epochs": 2, "random_state": 0, "hidden": (4,)}
    # One batch, so that its order is no matter; the outcome is dropped where it is missing, as nothing else can be.
    known = table[table["Y"].notna()] if missing != "error" else table
    in_memory = outcome_of(
        lambda: kind(**how, batch_size=64, device="cpu").fit(known.drop(columns="Y"), known["Y"].to_numpy())
    )
    with tempfile.TemporaryDirectory() as folder:
        written(folder, table, cuts, ending)
        streamed = outcome_of(lambda: kind(**how, batch_size=64, device="cpu").fit(folder, "Y"))
    assert (in_memory is None) == (streamed is None)
    if in_memory is None:
        return
    for own, other in zip(streamed.encoding_.columns, in_memory.encoding_.columns, strict=True):
        assert own.kind == other.kind
        if own.kind == "number":
            assert (own.low, own.high) == (other.low, other.high)
        else:
            assert own.levels == other.levels
    if kind is CIPClassifier:
        assert streamed.classes_.tolist() == in_memory.classes_.tolist()
    else:
        np.testing.assert_allclose(streamed.target_spread_, in_memory.target_spread_, rtol=1e-9)
    complete = known.drop(columns="Y").dropna() if missing != "impute" else known.drop(columns="Y")
    if len(complete):
        answers = [
            model.predict_proba(complete) if kind is CIPClassifier else model.predict(complete)
            for model in (streamed, in_memory)
        ]
        np.testing.assert_allclose(answers[0], answers[1], rtol=1e-4, atol=1e-5 * np.abs(answers[1]).max())
