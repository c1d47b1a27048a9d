"""What `ciplearn fit` would deliver, over seeds: against the baselines on (loss, VCF), and against the tolerance.

Tables: three made-up ones whose counterfactual values are known (`people.py`), and Adult where its files are passed.
Per seed, `compare_routes` chooses on 80 % of the rows, as `ciplearn fit` does; every candidate is then judged on fresh
rows (the other 20 % of Adult): loss, and the true VCF (on Adult under a model that is estimated on these rows). A
candidate is dominated where a baseline has less loss by more than two standard errors and a VCF at least 10 % smaller,
or no more loss and less than half the VCF.

Run: python benchmarks/tables.py [--seeds 10] [--jobs 2] [--adult FOLDER] [--only "law-like"]
"""

import argparse
import warnings

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from people import TABLES
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor, datasets, fit_scm, variance_of_counterfactuals
from ciplearn._core.columns import holds_numbers, task_of
from ciplearn.cli.commands import epochs_of
from ciplearn.estimators.criteria import Judged, auc, loss, score
from ciplearn.routes import compare_routes

FRESH = 10_000
TOLERANCE = 0.10


def made_up(name, seed):
    """Rows to fit on, fresh rows, and the true VCF of a predictor."""
    people = TABLES[name]
    noise = people.noise(FRESH, 10_000 + seed)
    few = {column: values[:1000] for column, values in noise.items()}
    table = people.world(people.noise(int(0.8 * people.rows), seed))
    roles = CausalGraph.from_edges(people.graph), people.outcome, list(people.protected)
    return table, people.world(noise), roles, lambda predict: people.true_vcf(predict, few)


def adult(folder, seed):
    """Adult's rows, and VCF under a model that is estimated on rows that nothing was trained on."""
    table = datasets.load_adult(folder, allow_download=False).train.sample(frac=1.0, random_state=seed)
    graph = datasets.graphs.adult_columns()
    cut = int(0.8 * len(table))
    fresh = table.iloc[cut:].reset_index(drop=True)
    judge = fit_scm(graph, fresh, random_state=1000 + seed)

    def vcf(predict):
        inputs = [name for name in fresh.columns if name != "income"]
        return variance_of_counterfactuals(predict, judge, fresh, ["sex"], 500, 20, seed, inputs=inputs).value

    return table.iloc[:cut].reset_index(drop=True), fresh, (graph, "income", ["sex"]), vcf


def said(model):
    """Predictions as one number per row."""
    if hasattr(model, "predict_proba"):
        return lambda rows: model.predict_proba(rows)[:, -1]
    return model.predict


def one(name, seed, folder):
    """What was chosen at a seed, and how every candidate does on fresh rows."""
    torch.set_num_threads(1)
    table, fresh, (graph, outcome, protected), vcf = adult(folder, seed) if name == "Adult" else made_up(name, seed)
    labels = task_of(table[outcome]) == "classification"
    model = (CIPClassifier if labels else CIPRegressor)(
        graph=graph,
        outcome=outcome,
        protected=protected,
        batch_size=256,
        hidden=(64, 64),
        early_stopping=True,
        random_state=seed,
        epochs=epochs_of("standard", len(table), 256),
    )
    X, y = table.drop(columns=outcome), table[outcome]
    shown = fresh.drop(columns=outcome)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compare_routes(model, X, y, TOLERANCE, random_state=seed)
        judged = {other: Judged.of(m, shown, fresh[outcome]) for other, m in found.models.items()}
        spread = {other: vcf(said(m)) for other, m in found.models.items()}
    free, chosen = judged["unconstrained"], judged[found.chosen]
    explained = loss(free.of_constant()) - loss(free)
    kinds = found.table.set_index("name")["kind"]
    beaten = []
    for other in judged:
        if kinds[other] not in ("baseline", "line", "left-out") or other == found.chosen:
            continue
        gain = chosen.losses() - judged[other].losses()
        clearly = gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
        if spread[other] < (0.9 if clearly else 0.5) * spread[found.chosen] and gain.mean() >= 0:
            beaten.append(other)
    boosted = (HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor)(
        categorical_features="from_dtype", random_state=seed
    )
    levels = {c: pd.CategoricalDtype(sorted(X[c].unique())) for c in X.columns if not holds_numbers(X[c])}
    boosted.fit(X.astype(levels), y)
    trees = Judged.of(boosted, shown.astype(levels), fresh[outcome])
    best = auc if labels else score
    return {
        "table": name,
        "seed": seed,
        "chosen": found.chosen,
        "lost": (loss(chosen) - loss(free)) / explained,
        "vcf left": spread[found.chosen] / spread["unconstrained"],
        "auc or R²": best(chosen),
        "free": best(free),
        "boosting": best(trees),
        "CF1": best(judged["CF1"]) if "CF1" in judged else np.nan,
        "CF2": best(judged["CF2"]) if "CF2" in judged else np.nan,
        "CF2 vcf left": spread.get("CF2", np.nan) / spread["unconstrained"],
        "spread": float(
            np.std(said(found.models[found.chosen])(shown)) / np.std(said(found.models["unconstrained"])(shown))
        ),
        "dominated by": ", ".join(beaten),
        "notes": " ".join(found.notes),
    }


def main():
    """Print one row per table and seed, and what holds over them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--adult", help="the folder with Adult's files")
    parser.add_argument("--only", help="names of tables, with commas between them")
    options = parser.parse_args()
    names = [*(["Adult"] if options.adult else []), *TABLES]
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    first = options.first_seed
    tasks = [(name, seed, options.adult) for name in names for seed in range(first, first + options.seeds)]
    found = []
    for row in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(delayed(one)(*task) for task in tasks):
        figures = ", ".join(
            f"{key} {row[key]:.3f}" for key in ("lost", "vcf left", "auc or R²", "free", "boosting", "CF2")
        )
        print(f"{row['table']} {row['seed']}: {row['chosen']}; {figures}; {row['dominated by']}", flush=True)
        found.append(row)
    rows = pd.DataFrame(found).sort_values(["table", "seed"])
    pd.set_option("display.width", 250, "display.max_columns", 20, "display.max_colwidth", 60)
    print(rows.drop(columns="notes").round(3).to_string(index=False))
    for name, own in rows.groupby("table", sort=False):
        print(
            f"{name}: nothing but a constant {int((own['spread'] < 0.05).sum())}, dominated "
            f"{int((own['dominated by'] != '').sum())}, beyond the tolerance {int((own['lost'] > TOLERANCE).sum())} of "
            f"{len(own)}; against boosting {(own['free'] - own['boosting']).mean():+.4f}"
        )
        print("  notes:", own["notes"].iloc[0])


if __name__ == "__main__":
    main()
