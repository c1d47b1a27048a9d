"""The card of a saved model: what it is and rests on, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, LEFT_OUT, LINE, NO_ROUTE


def card(description: dict[str, Any]) -> str:
    """Write what the description of a saved model says, in a few sentences."""
    roles, gamma = description["roles"], description["gamma"]
    lines = [f"# {description['class']}", "", f"Predicts from: {_named(roles['inputs'])}.", ""]
    weight = f"at gamma = {gamma:g} (a plain weight of {gamma * description['gamma_scale']:.3g})"
    if description["route"] == NO_ROUTE:
        lines.append("Trained without a penalty: nothing was done for counterfactual invariance.")
    elif description["route"] == LINE:
        share = description["network"]["share"]
        lines += [
            f"A straight line: the predictor from what {_named(roles['protected'])} leaves alone, moved towards an "
            f"unconstrained one. It keeps {share:.1%} of the latter's variance of counterfactuals, if the graph is "
            f"right.",
        ]
    elif description["route"] == LEFT_OUT:
        lines.append(
            f"Trained without a penalty and without looking at {_named(roles['protected'])}. It still sees all that "
            f"they have changed in other columns: audit it before relying on it."
        )
    elif description["route"] == COUNTERFACTUAL:
        imagined_by = (
            _escaped(one["said"]) + (f" (kept in `{one['file']}`)" if one["file"] else "")
            for one in description["counterfactuals"]
        )
        lines += [
            f"Trained with a penalty on the variance of predictions had {_named(roles['protected'])} been "
            f"different, {weight}, on rows imagined by {'; '.join(imagined_by)}.",
            "",
            "Such a predictor is as invariant as the causal model is right. Audit it before relying on it, under a "
            "model of other rows: the one that it was trained with does not judge it.",
        ]
    elif description["route"] != INDEPENDENCE:
        lines.append(f"Made along the route {_escaped(description['route'])}. Audit the model before relying on it.")
    else:
        stated = roles["statements"][0]
        given = f" given {_named(stated['given'])}" if stated["given"] else ""
        lines += [
            f"Trained with a penalty on dependence of the prediction on {_named(stated['right'])}{given}, {weight}.",
            "",
            "A penalty makes dependence small, not zero, and the step from independence to counterfactual invariance "
            "rests on the causal graph. Audit the model before relying on it.",
        ]
    if description["scores"]:
        lines += ["", "| measure | value |", "|---|---|"]
        lines += [f"| {_escaped(name)} | {value:.4g} |" for name, value in description["scores"].items()]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    return "\n".join([*lines, "", f"Saved with {versions}. Load with `ciplearn.load_model(folder)`.", ""])


def _named(names: Iterable[str]) -> str:
    return ", ".join(_escaped(name) for name in names)


def _escaped(text: str) -> str:
    """Write text so that Markdown shows its signs as they are; an underscore within a word is one anyway."""
    signs = r"([\\`*{}\[\]<>#!|~&$]|(?<![^\W_])_|_(?![^\W_]))"
    return re.sub(signs, r"\\\1", " ".join(text.split()))
