import pandas as pd

from reproduction.drawing import boxes, panels


def test_methods_at_a_gamma_stand_side_by_side_and_one_alone_stands_at_its_tick():
    rows = [("none", 0.0), ("one", 1.0), ("other", 1.0)]
    table = pd.DataFrame([{"method": method, "gamma": gamma, "mse": 1.0 + k} for method, gamma in rows for k in (0, 1)])
    looks = {"colours": dict.fromkeys(table["method"], "#3a4250"), "labels": {m: m.upper() for m in table["method"]}}
    _, [[ax]] = panels(1)
    boxes(ax, table, "mse", ("none", "one", "other"), **looks)
    centres = [box.get_path().get_extents().intervalx.mean().round(6) for box in ax.patches]
    assert centres == [0.0, 0.8, 1.2]
    assert ax.get_legend_handles_labels()[1] == ["NONE", "ONE", "OTHER"]
