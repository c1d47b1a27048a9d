"""Draw docs/images/straight_line.png: what the straight line answers, and what it costs beside the other routes.

Run: python docs/images/make_straight_line.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.stats import norm

from ciplearn import CausalGraph, CIPRegressor, StructuralCausalModel, variance_of_counterfactuals
from ciplearn.routes import compare_routes
from ciplearn.scm import Additive

SHARES = (0.8, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
COLOURS = {"line": "#222222", "independence": "#d95f02", "counterfactual": "#1b7ab8"}


def process():
    """Return a process whose outcome needs the noise of L, which A did not cause."""
    return StructuralCausalModel(
        CausalGraph.from_edges("Z -> A, Z -> L, A -> L, Z -> Y, A -> Y, L -> Y"),
        equations={
            "Z": Additive(),
            "A": Additive(lambda p: np.sin(2 * p["Z"])),
            "L": Additive(lambda p: np.tanh(p["A"]) + 0.5 * p["Z"]),
            "Y": Additive(lambda p: np.sin(3 * p["Z"]) + p["A"] + p["L"] ** 2),
        },
        noise={"Z": norm(), "A": norm(), "L": norm(0, 0.5), "Y": norm(0, 0.2)},
    )


def draw_answers(axes, found, scm, row):
    """Show what each model would have answered to one row, had A been different."""
    values = np.linspace(-2, 2, 81)
    repeated = row.loc[row.index.repeat(len(values))].reset_index(drop=True)
    worlds = scm.counterfactual(repeated, {"A": values})[["Z", "A", "L"]]
    kept = {1.0: "f: unconstrained, s² = 1", 0.2: "s² = 0.2", 0.05: "s² = 0.05", 0.0: "g: CF1, s² = 0"}
    for share, label in kept.items():
        name = "unconstrained" if share == 1 else f"line, {share:.0%} of VCF kept"
        axes.plot(values, found.models[name].predict(worlds), color=plt.cm.viridis(0.85 - 0.85 * share**0.5), lw=2)
        axes.annotate(label, (values[-1], found.models[name].predict(worlds)[-1]), (4, -3), textcoords="offset points")
    axes.set(xlabel="value of A in an intervention", ylabel="prediction for one person", xlim=(-2, 3.9))
    axes.set_xticks([-2, -1, 0, 1, 2])
    axes.set_title("The line mixes two answers", loc="left")


def draw_costs(axes, table):
    """Show error against VCF, both of the true process: the line, and the routes that are trained."""
    for kind, label in (("line", "straight line"), ("independence", "independence"), ("counterfactual", None)):
        rows = table[(table["kind"] == kind) & (table["left"] > 0)]
        free = table[table["kind"] == "unconstrained"]
        x, y = ([*free[name], *rows[name]] for name in ("left", "cost"))
        style = {"lw": 2.4, "marker": "o"} if kind == "line" else {"lw": 1.5, "marker": "s", "ls": "--"}
        axes.plot(x, y, color=COLOURS[kind], ms=5, label=label or "counterfactual, estimated model", **style)
    axes.axhline(1, color="#777777", lw=1)
    axes.annotate("CF1", (0.12, 1), (0, 4), textcoords="offset points", color="#555555")
    axes.annotate("below the line:\nworth a training", (9, 0.3), color="#555555")
    axes.set(xscale="log", xlim=(120, 0.1), ylim=(0, 1.12))
    axes.set(xlabel="VCF left, % of the unconstrained predictor's", ylabel="squared error / that of CF1")
    axes.set_xticks([100, 20, 5, 1, 0.2], ["100", "20", "5", "1", "0.2"])
    axes.minorticks_off()
    axes.set_title("What invariance costs", loc="left")
    axes.legend(frameon=False, loc="lower right")


def main():
    """Train the routes, measure all of them on the true process, draw."""
    torch.set_num_threads(1)
    scm = process()
    rows, test = scm.sample(6000, random_state=0), scm.sample(2000, random_state=1)
    model = CIPRegressor(graph=scm.graph, outcome="Y", protected=["A"], epochs=150, random_state=0)
    found = compare_routes(model, rows[["Z", "A", "L"]], rows["Y"], gammas=(0.3, 1, 3, 10), shares=SHARES, verbose=True)
    vcf = variance_of_counterfactuals(found.models, scm, test, ["A"], 400, 100, 0, inputs=["Z", "A", "L"])
    error = {name: np.mean((one.predict(test[["Z", "A", "L"]]) - test["Y"]) ** 2) for name, one in found.models.items()}
    table = found.table.assign(
        left=[100 * vcf[name].value / vcf["unconstrained"].value for name in found.table["name"]],
        cost=[error[name] / error["CF1"] for name in found.table["name"]],
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    draw_answers(left, found, scm, test.head(1))
    draw_costs(right, table)
    figure.savefig(Path(__file__).parent / "straight_line.png", dpi=130, facecolor="white")
    return table[["name", "left", "cost"]]


if __name__ == "__main__":
    main()
