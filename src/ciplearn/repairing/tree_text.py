"""The text that LightGBM keeps trees in, checked before LightGBM reads it, whose process a wrong number ends."""

from __future__ import annotations

import math
import re

_END = "end of trees"
_CATEGORICAL = 1  # the bit of a decision by categories


def check_trees(text: str) -> None:
    """Refuse text that LightGBM did not write, by a ValueError or a KeyError."""
    trees, end, _ = text.partition(f"\n{_END}\n")
    head, *blocks = re.split(r"^(?=Tree=)", f"{trees}\n", flags=re.MULTILINE)
    said = _fields(head)
    names = said["feature_names"].split()
    per_round = _one(said["num_tree_per_iteration"])
    kinds = re.findall(r"num_class:(\S+)", said.get("objective", ""))
    _hold(end, [len(block.encode()) for block in blocks] == _whole(said["tree_sizes"]))
    _hold(len(names) == _one(said["max_feature_idx"]) + 1 == len(said["feature_infos"].split()))
    _hold(per_round > 0, _one(said["num_class"]) == per_round, len(blocks) % max(per_round, 1) == 0)
    _hold(all(kind == said["num_class"] for kind in kinds))
    for number, block in enumerate(blocks):
        _check_tree(_fields(block), number, len(names))


def _check_tree(tree: dict[str, str], number: int, features: int) -> None:
    leaves, categories = _one(tree["num_leaves"]), _one(tree["num_cat"])
    splits, kinds = _whole(tree["split_feature"]), _whole(tree["decision_type"])
    thresholds = _numbers(tree["threshold"])
    _hold(_one(tree["Tree"]) == number, len(splits) == len(thresholds) == len(kinds) == leaves - 1)
    _hold(all(0 <= feature < features for feature in splits), len(_numbers(tree["leaf_value"])) == leaves)
    sides = [_whole(tree["left_child"]), _whole(tree["right_child"])]
    # Every leaf, ~0 to ~(n − 1), and every split but the first hang below one split that comes before them: no circle.
    _hold(sorted(sides[0] + sides[1]) == [*range(-leaves, 0), *range(1, leaves - 1)] or leaves == 1)
    _hold(all(len(side) == leaves - 1 for side in sides))
    _hold(all(child < 0 or child > split for side in sides for split, child in enumerate(side)))
    if categories:
        ends = _whole(tree["cat_boundaries"])
        _hold(len(ends) == categories + 1, ends == sorted(ends), ends[0] == 0)
        _hold(ends[-1] == len(_whole(tree["cat_threshold"])))
    chosen = [value for value, kind in zip(thresholds, kinds, strict=True) if kind & _CATEGORICAL]
    _hold(all(0 <= value < categories and value == int(value) for value in chosen))
    for name in ("leaf_weight", "leaf_count", "internal_value", "internal_weight", "internal_count", "split_gain"):
        _hold(name not in tree or len(_numbers(tree[name])) in (0, leaves - (not name.startswith("leaf"))))
    _hold(_one(tree["is_linear"]) in (0, 1), _numbers(tree["shrinkage"])[0] > 0)
    if _one(tree["is_linear"]):
        used, below = _whole(tree["num_features"]), _whole(tree["leaf_features"])
        _hold(len(used) == leaves == len(_numbers(tree["leaf_const"])), all(count >= 0 for count in used))
        _hold(sum(used) == len(below) == len(_numbers(tree["leaf_coeff"])))
        _hold(all(0 <= feature < features for feature in below))


def _fields(block: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in block.splitlines() if "=" in line]
    _hold(len({name for name, *_ in pairs}) == len(pairs))
    return {name: value for name, _, value in pairs}


def _whole(text: str) -> list[int]:
    # Python reads 1_000 and digits of other scripts as numbers, too.
    _hold(re.fullmatch(r"[-0-9 ]*", text))
    return [int(number) for number in text.split(" ") if number]


def _one(text: str) -> int:
    (number,) = _whole(text)
    return number


def _numbers(text: str) -> list[float]:
    _hold(re.fullmatch(r"[-+.e0-9 ]*", text))
    numbers = [float(number) for number in text.split(" ") if number]
    _hold(all(map(math.isfinite, numbers)))
    return numbers


def _hold(*facts: object) -> None:
    if not all(facts):
        raise ValueError("no trees of LightGBM")
