"""The card of a saved model: what it is and rests on, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ciplearn.estimators.preparation import COUNTERFACTUAL, INDEPENDENCE, NO_ROUTE


def card(description: dict[str, Any]) -> str:
    """Write what the description of a saved model says, in a few sentences."""
    lines = [f"# {description['class']}", "", f"Predicts from: {_named(description['roles']['inputs'])}.", ""]
    lines += _how_trained(description)
    if description["scores"]:
        lines += ["", "| measure | value |", "|---|---|"]
        lines += [f"| {_escaped(name)} | {value:.4g} |" for name, value in description["scores"].items()]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    return "\n".join([*lines, "", f"Saved with {versions}. Load with `ciplearn.load_model(folder)`.", ""])


def _how_trained(description: dict[str, Any]) -> list[str]:
    """Say what training was penalised for, or what a route without a penalty did instead."""
    route, roles, gamma = description["route"], description["roles"], description["gamma"]
    protected = _named(roles["protected"])
    weight = f"at gamma = {gamma:g} (a plain weight of {gamma * description['gamma_scale']:.3g})"
    if route == COUNTERFACTUAL:
        imagined_by = (
            _escaped(one["said"]) + (f" (kept in `{one['file']}`)" if one["file"] else "")
            for one in description["counterfactuals"]
        )
        return [
            f"Trained with a penalty on the variance of predictions had {protected} been different, {weight}, on rows "
            f"imagined by {'; '.join(imagined_by)}.",
            "",
            "Such a predictor is as invariant as the causal model is right. Audit it before relying on it, under a "
            "model of other rows: the one that it was trained with does not judge it.",
        ]
    if route == INDEPENDENCE:
        stated = roles["statements"][0]
        given = f" given {_named(stated['given'])}" if stated["given"] else ""
        return [
            f"Trained with a penalty on dependence of the prediction on {_named(stated['right'])}{given}, {weight}.",
            "",
            "A penalty makes dependence small, not zero, and the step from independence to counterfactual invariance "
            "rests on the causal graph. Audit the model before relying on it.",
        ]
    if route == NO_ROUTE:
        return ["Trained without a penalty: nothing was done for counterfactual invariance."]
    made = f"Made along the route {_escaped(route)}. "
    if "share" in description["network"]:
        return [
            f"{made}A straight line: the predictor from what {protected} leaves alone, moved towards an unconstrained "
            f"one. It keeps {description['network']['share']:.1%} of the latter's variance of counterfactuals, if the "
            "graph is right."
        ]
    if not gamma and not {*roles["protected"]} & {*roles["inputs"]}:
        made += (
            f"Trained without a penalty and without looking at {protected}, and it still sees all that they have "
            "changed in other columns. "
        )
    return [f"{made}Audit the model before relying on it."]


def _named(names: Iterable[str]) -> str:
    return ", ".join(_escaped(name) for name in names)


def _escaped(text: str) -> str:
    """Write text so that Markdown shows its signs as they are; an underscore within a word is one anyway."""
    signs = r"([\\`*{}\[\]<>#!|~&$]|(?<![^\W_])_|_(?![^\W_]))"
    return re.sub(signs, r"\\\1", " ".join(text.split()))
