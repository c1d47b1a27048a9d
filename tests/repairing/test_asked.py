"""How a model is asked."""

import numpy as np
import pandas as pd

from ciplearn.repairing.asked import Asked


def test_model_is_asked_once_about_rows_that_are_alike():
    table = pd.DataFrame({"x": np.tile([1.0, 2.0, 3.0], 40), "Y": np.arange(120.0)})
    shown = []

    def model(rows):
        shown.append(len(rows))
        return rows["x"].to_numpy() * 2

    asked = Asked.of(model, table, "Y", (), ["x"])
    shown.clear()
    assert (asked(table)[:, 0] == table["x"] * 2).all()
    assert (asked(table.iloc[:3])[:, 0] == [2.0, 4.0, 6.0]).all()
    assert shown == [3, 3]
