"""Draw the pictures of the guide, all from the story of the applicants: docs/images/guide_*.

Run: python docs/images/make_guide.py
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from ciplearn import CIPRegressor, GammaSearch, datasets, fit_scm, paired_effects, sensitivity
from ciplearn.experiments.demo import OURS, USUAL, draw_people
from ciplearn.routes import compare_routes

HERE = Path(__file__).parent
BLUE, RED, GREY, GREEN = "#1b7ab8", "#c8553d", "#8a8f98", "#3a8f5c"
COLOURS = {"independence": RED, "counterfactual": BLUE, "line": GREY}

torch.set_num_threads(1)
world = datasets.applicants()
people, new = world.sample(2000, random_state=0), world.sample(1000, random_state=1)
X, y = people.drop(columns="income"), people["income"]
roles = {"graph": world.graph, "outcome": "income", "protected": ["sex", "age"], "epochs": 60, "random_state": 0}


def save(figure, name):
    """Write a picture small enough for a page."""
    figure.tight_layout()
    figure.savefig(HERE / f"guide_{name}.png", dpi=110)
    plt.close(figure)


def draw_question(free, model):
    """Ten women, what two predictors say of them, and what they would have said had they been men."""
    women = new[new["sex"] == "f"].head(10)
    men = world.counterfactual(women, {"sex": ["m"] * len(women)})
    models = {USUAL: free, OURS: model}
    draw_people(models, women, men).savefig(HERE / "guide_question.png", dpi=110)
    draw_people(models, women, men, stacked=True).savefig(HERE / "guide_question_narrow.png", dpi=150)


def draw_routes(found):
    """Error against what is left of VCF, for every candidate of every route."""
    figure, panel = plt.subplots(figsize=(7, 4))
    table = found.table
    free = table[table["name"] == "unconstrained"].iloc[0]
    for kind, colour in COLOURS.items():
        rows = table[table["name"].str.startswith(kind)].sort_values("vcf")
        panel.plot(rows["vcf"] / free["vcf"], rows["score"], "o-", color=colour, label=kind)
    panel.scatter([1], [free["score"]], color="black", zorder=3, label="unconstrained")
    panel.set(xlabel="share of the unconstrained VCF that is left", ylabel="R² on rows that judge")
    panel.legend(frameon=False)
    save(figure, "routes")


def draw_how_much(search, tolerance):
    """Score over gamma, with what may be lost."""
    table = search.frontier_.table.query("0 < gamma < 1000").sort_values("gamma")
    base = search.frontier_.table.query("gamma == 0")["score"].item()
    figure, panel = plt.subplots(figsize=(7, 3.6))
    panel.semilogx(table["gamma"], table["score"], "o-", color=BLUE)
    panel.axhline(base, color=GREY, ls=":")
    panel.axhspan(base * (1 - tolerance), base, color=GREEN, alpha=0.15, label=f"may be lost: {tolerance:.0%}")
    panel.axvline(search.best_gamma_, color=RED, ls="--", label=f"chosen: gamma = {search.best_gamma_:.2g}")
    panel.set(xlabel="gamma, the weight of the penalty", ylabel="R² on rows that judge")
    panel.legend(frameon=False, loc="lower left")
    save(figure, "how_much")


def draw_measure(models, scm):
    """The mean effect of each pair of values, with and without the penalty."""
    pairs = paired_effects(models, scm, new, protected=["sex", "age"]).table
    pairs = pairs[~pairs["variable"].str.contains("×")]
    labels = [f"{pair.first}  →  {pair.second}" for pair in pairs[pairs["model"] == "usual"].itertuples()]
    labels = [" ".join(f"{float(w):.0f}" if w.replace(".", "").isdigit() else w for w in x.split(" ")) for x in labels]
    figure, panel = plt.subplots(figsize=(8, 2.8))
    for (name, rows), colour in zip(pairs.groupby("model", sort=False), (GREY, BLUE), strict=True):
        panel.scatter(rows["effect"], range(len(rows)), color=colour, s=60, label=name)
    panel.axvline(0, color="black", lw=0.8)
    panel.set(yticks=range(len(labels)), xlabel="mean change of the prediction for the same people, thousands")
    panel.set_yticklabels(labels)
    panel.invert_yaxis()
    panel.legend(frameon=False)
    save(figure, "measure")


def draw_networks():
    """Discs of some size under some light."""
    radius = np.hypot(*np.meshgrid(np.linspace(-1, 1, 32), np.linspace(-1, 1, 32)))
    figure, axes = plt.subplots(2, 6, figsize=(8, 2.9))
    for row, size in zip(axes, (0.4, 0.7), strict=True):
        for panel, light in zip(row, np.linspace(0, 0.9, 6), strict=True):
            picture = 1 / (1 + np.exp(-20 * (size - radius))) * 0.6 + light * 0.4
            panel.imshow(picture, cmap="gray", vmin=0, vmax=1)
            panel.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("small")
    axes[1, 0].set_ylabel("large")
    figure.suptitle("The size should count, the light should not", y=0.99, fontsize=11)
    save(figure, "networks")


def draw_scale():
    """Seconds per epoch against rows, on one thread."""
    numbers = [1000, 2000, 4000, 8000, 16000, 32000]
    figure, panel = plt.subplots(figsize=(7, 3.6))
    for gamma, label, colour in ((0, "without a penalty", GREY), (1, "with the default penalty", BLUE)):
        seconds = []
        for n in numbers:
            rows = world.sample(n, random_state=0)
            model = CIPRegressor(**{**roles, "epochs": 1}, gamma=gamma)
            few = timed(model, rows)
            seconds.append((timed(model.set_params(epochs=6), rows) - few) / 5)
        panel.loglog(numbers, seconds, "o-", color=colour, label=label)
    panel.set(xlabel="rows", ylabel="seconds per epoch")
    panel.legend(frameon=False)
    save(figure, "scale")


def timed(model, rows):
    """Seconds of one core that a fit takes, the best of three; what else the machine does is not counted."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        model.fit(rows.drop(columns="income"), rows["income"])
        best = min(best, time.process_time() - start)
    return best


def main():
    """Draw all of them."""
    (HERE / "guide_graph.svg").write_text(world.graph.to_svg(), encoding="utf-8")
    verdict = world.graph.criterion(outcome="income", protected=["sex", "age"])
    (HERE / "guide_verdict.svg").write_text(world.graph.to_svg(verdict), encoding="utf-8")
    draw_networks()
    draw_scale()
    scm = fit_scm(world.graph, people)
    free = CIPRegressor(**roles, gamma=0).fit(X, y)
    model = CIPRegressor(**roles, gamma=3, counterfactuals=scm).fit(X, y)
    draw_question(free, model)
    draw_measure({"usual": free, "gamma = 3": model}, fit_scm(world.graph, new))
    draw_how_much(GammaSearch(CIPRegressor(**roles), tolerance=0.2, cv=1, random_state=0).fit(X, y), 0.2)
    draw_routes(compare_routes(CIPRegressor(**roles), X, y, tolerance=0.2, baselines=False))
    swing = sensitivity(free, world.graph, people.head(500), n_points=50, n_interventions=30)
    figure = swing.plot().figure
    figure.set_size_inches(8, 5)
    save(figure, "doubt")


if __name__ == "__main__":
    main()
