"""A short card that says what a saved model is."""

from __future__ import annotations

from typing import Any


def model_card(description: dict[str, Any]) -> str:
    """Return the card as Markdown."""
    said = description["independence"]
    lines = [
        f"# {description['class']}",
        "",
        f"Predicts from: {', '.join(description['inputs'])}.",
        "",
    ]
    if said is None:
        lines.append("Trained without an independence penalty: nothing was done for counterfactual invariance.")
    else:
        given = f" given {', '.join(said['given'])}" if said["given"] else ""
        lines.append(
            f"Trained with a penalty on dependence of the prediction on {', '.join(said['right'])}{given}, at gamma = "
            f"{description['gamma']:g} (a plain weight of {description['gamma'] * description['gamma_scale']:.3g})."
        )
        lines.append("")
        lines.append(
            "A penalty makes dependence small, not zero, and the step from independence to counterfactual invariance "
            "rests on the causal graph. Audit the model before relying on it."
        )
    if description["scores"]:
        lines += ["", "| measure | value |", "|---|---|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in description["scores"].items()]
    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    lines += ["", f"Saved with {versions}. Load with `ciplearn.estimators.load_model(folder)`.", ""]
    return "\n".join(lines)
