"""Trees of LightGBM are checked before LightGBM reads them, which would end the process."""

import random

import numpy as np
import pandas as pd
import pytest

from ciplearn.repairing.tree_text import check_trees

lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def kept():
    """Models of every kind that LightGBM writes, as text."""
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"a": draw.normal(size=300), "b": pd.Categorical(draw.choice(list("uvwxyz"), 300))})
    y = rows["a"] + rows["b"].isin(["u", "x"]) + 0.1 * draw.normal(size=300)
    how = {"n_estimators": 4, "num_leaves": 7, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}
    models = {
        "numbers": lightgbm.LGBMRegressor(**how).fit(rows[["a"]], y),
        "labels": lightgbm.LGBMClassifier(**how, min_data_per_group=1, cat_smooth=0).fit(rows, y > 0),
        "three labels": lightgbm.LGBMClassifier(**how).fit(rows, pd.cut(y, 3, labels=False)),
        "lines": lightgbm.LGBMRegressor(**how, linear_tree=True).fit(rows[["a"]], y),
        "a constant": lightgbm.LGBMRegressor(**how).fit(rows[["a"]].head(6), y.head(6)),
        "no trees": lightgbm.LGBMRegressor(**how).fit(rows[["a"]], 0 * y),
    }
    return {name: model.booster_.model_to_string() for name, model in models.items()}


def test_what_lightgbm_writes_is_taken(kept):
    for text in kept.values():
        check_trees(text)
        again = lightgbm.Booster(model_str=text).model_to_string()
        check_trees(again)


SPLITS = ["split_feature", "left_child", "right_child", "decision_type", "threshold"]
WRONG = ["-1", "999999", "1000000000", "nan", "-99999", "x", "99999999999999999999", "1_0", "٣"]


@pytest.mark.parametrize("kind", ["numbers", "labels", "lines"])
def test_trees_that_were_changed_are_refused(kept, kind):
    lines = kept[kind].split("\n")
    end = lines.index("end of trees")
    trees = [place for place, line in enumerate(lines[:end]) if line.startswith("Tree=")]
    for name in (
        "num_leaves",
        "split_feature",
        "left_child",
        "right_child",
        "decision_type",
        "threshold",
        "leaf_value",
    ):
        for wrong in WRONG:
            place = next(place for place in range(trees[1], end) if lines[place].startswith(f"{name}="))
            _, _, value = lines[place].partition("=")
            changed = f"{name}={' '.join([wrong, *value.split(' ')[1:]])}"
            text = "\n".join([*lines[:place], changed, *lines[place + 1 :]])
            if name in ("threshold", "leaf_value", "decision_type") and wrong not in ("nan", "x", "1_0", "٣"):
                continue
            sizes = next(at for at, line in enumerate(lines) if line.startswith("tree_sizes="))
            before, after = lines[sizes].split("=")[1].split(" "), len(changed.encode()) - len(lines[place].encode())
            before[1] = str(int(before[1]) + after)
            text = text.replace(lines[sizes], "tree_sizes=" + " ".join(before))
            with pytest.raises((ValueError, KeyError)):
                check_trees(text)


def test_text_that_was_cut_or_lost_a_line_is_refused(kept):
    draw = random.Random(0)
    for text in kept.values():
        lines = text.split("\n")
        end = lines.index("end of trees")
        for _ in range(40):
            cut = draw.randrange(1, end)
            if "=" in lines[cut] and not lines[cut].startswith(("objective", "version", "monotone", "label_index")):
                with pytest.raises((ValueError, KeyError)):
                    check_trees("\n".join(lines[:cut] + lines[cut + 1 :]))
            with pytest.raises((ValueError, KeyError)):
                check_trees("\n".join(lines[:cut]))
