"""Test error of each route where the true VCF has fallen to 5 % and to 1 % of the unconstrained one, relative to CF1's.

Routes: the straight line between CF1 and the unconstrained predictor; the independence route and the counterfactual
route (on rows imagined by a model that was estimated from the training rows), each with and without the invariant path;
and `auto`, the route that is best under a second model, estimated on rows that training never saw. Where data cannot
tell mechanisms apart, the counterfactual route is trained and judged against the worst of them, as `ciplearn fit` does.

Run: python benchmarks/frontier_quality.py [--seeds 5] [--epochs 100] [--jobs 2] [--plain] [--only "linear,wavy"]
[--learner boosted]; a CUDA device is used where there is one.
"""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from processes import CHOSEN_ON, NEW, ROOTS, SEEN_IN_ROUTES

from ciplearn import CIPClassifier, CIPRegressor, fit_scm
from ciplearn.baselines import CF1
from ciplearn.causal.names import columns_of
from ciplearn.datasets import MinMaxScaling
from ciplearn.estimators.criteria import Judged
from ciplearn.estimators.preparation import Prepared
from ciplearn.learners import LEARNERS, Network

GAMMAS = (0.0, 0.1, 0.3, 0.6, 0.8, 1.0, 1.8, 3.0, 6.0, 15.0, 50.0, 200.0)
SHARES = (0.05, 0.01)
TWELVE = [*CHOSEN_ON, *SEEN_IN_ROUTES, *NEW]


def at_share(losses, vcf, share):
    """Smallest loss where the log of vcf crosses ``share`` of its value at gamma 0, by linear interpolation."""
    target = np.log(share * vcf[0])
    height = np.log(np.maximum(vcf, 1e-300))
    crossings = [
        losses[i] + (losses[i + 1] - losses[i]) * (target - height[i]) / (height[i + 1] - height[i])
        for i in range(len(vcf) - 1)
        if (height[i] - target) * (height[i + 1] - target) <= 0 and height[i] != height[i + 1]
    ]
    return min(crossings, default=float("nan"))


class Case:
    """Scaled rows of a process, and counterfactual rows that are the same for all models."""

    def __init__(self, name, scm, points=400, interventions=100):
        raw = scm.sample(10_000, random_state=0)
        if name == "scenario 2":
            raw = raw[raw["A"].abs() < 5.5]  # beyond, rounding hides the noise of L
        labels = name.endswith("labels")
        scaling = None if labels else MinMaxScaling.fit(raw)
        table, self.scm = (raw, scm) if labels else (scaling.transform(raw), scaling.model(scm))
        self.name, self.graph, self.labels = name, scm.graph, labels
        cut = int(0.8 * len(table))
        train, test = table.iloc[:cut], table.iloc[cut:]
        self.train, self.X, self.y = train, train.drop(columns="Y"), train["Y"]
        self.test, self.truth = test.drop(columns="Y"), test["Y"]
        self.worlds = self.imagined(self.scm, test.drop(columns="Y").head(points), interventions)
        # Half of the test rows estimate the model that judges, the other half is judged.
        half = len(test) // 2
        judged = test.drop(columns="Y").iloc[half : half + points]
        judges, self.is_open = self.models(test.iloc[:half], random_state=1)
        self.judging = [self.imagined(judge, judged, interventions) for judge in judges]
        self.estimated, is_open = self.models(train, random_state=0)
        self.is_open |= is_open

    def models(self, rows, random_state):
        """The estimated model, with those that data cannot tell from it; whether they leave more than that open."""
        scm = fit_scm(self.graph, rows, random_state=random_state)
        matters = [node for node in self.graph.descendants("A") if node in self.X.columns and node != "A"]
        is_open = any(fit.ambiguity and fit.tie is None for fit in scm.report.nodes if fit.node in matters)
        return [scm, *scm.ties(matters)[:2]], is_open

    def imagined(self, scm, rows, interventions):
        """The rows in each of several worlds, one world after the other."""
        protected = list(columns_of("A", self.X.columns))
        draws = self.X[protected].sample(interventions, random_state=0)
        worlds = []
        for _, draw in draws.iterrows():
            value = draw.to_numpy() if len(protected) > 1 else draw.iloc[0]
            worlds.append(scm.counterfactual(rows, {"A": value}, random_state=0)[list(self.X.columns)])
        return interventions, pd.concat(worlds)

    def vcf(self, answer, worlds):
        """Mean over rows of the variance over interventions."""
        count, table = worlds
        return float(answer(table).reshape(count, -1).var(axis=0).mean())

    def judged(self, answer):
        """VCF under the worst of the models that judge."""
        return max(self.vcf(answer, worlds) for worlds in self.judging)

    def answer(self, model):
        """Predictions as numbers."""
        return (lambda table: model.predict_proba(table)[:, 1]) if self.labels else model.predict

    def measures(self, answer):
        """Loss, true VCF and VCF under the models that judge."""
        return self.loss(answer(self.test)), self.vcf(answer, self.worlds), self.judged(answer)

    def loss(self, answers):
        """Squared error, or log loss."""
        if not self.labels:
            return float(np.mean((answers - self.truth.to_numpy()) ** 2))
        classes = np.unique(self.y)
        truth = np.searchsorted(classes, self.truth.to_numpy())
        return float(Judged(truth, np.column_stack([1 - answers, answers]), np.zeros(2), 2).losses().mean())


def measured(case, models):
    """Loss, true VCF and judged VCF of models, mean over seeds: one row per gamma."""
    rows = []
    for (gamma, _), model in models.items():
        rows.append((gamma, *case.measures(case.answer(model))))
    return pd.DataFrame(rows, columns=["gamma", "loss", "vcf", "judged"]).groupby("gamma").mean().reset_index()


def trained(model, case, seeds):
    """One model per gamma and seed; on a device as one stack."""
    prepared = Prepared.of(model, case.X, case.y)
    pairs = [(gamma, seed) for gamma in GAMMAS for seed in range(seeds)]
    on_device = prepared.rows.device.type == "cuda"
    # The unconstrained network is another one than those with a penalty, and is not stacked with them.
    alone = [pair for pair in pairs if not (on_device and pair[0])]
    found = {(gamma, seed): prepared.trained(gamma, random_state=seed) for gamma, seed in alone}
    stacked = [pair for pair in pairs if pair not in found]
    return found | (dict(zip(stacked, prepared.stacked(stacked), strict=True)) if stacked else {})


def study(name, process, options):
    """Return the curves of all routes on one process."""
    torch.set_num_threads(1)
    case = Case(name, process())
    roles = {"graph": case.graph, "outcome": "Y", "protected": ["A"]}
    if options.learner == "network":
        own = {} if options.learning_rate is None else {"learning_rate": options.learning_rate}
        roles["learner"] = Network(epochs=options.epochs, **own)
    else:
        roles["learner"] = LEARNERS[options.learner]()
    kind = CIPClassifier if case.labels else CIPRegressor
    paths = (True, False) if options.plain else (True,)
    models = {}
    for path in paths:
        mark = " + path" if path else ""
        own = None if path else False
        models[f"independence{mark}"] = kind(**roles, invariant_path=own)
        models[f"counterfactual{mark}"] = kind(**roles, invariant_path=own, counterfactuals=case.estimated)
    fits, seconds = {}, {}
    for label, model in models.items():
        start = time.perf_counter()
        fits[label] = trained(model, case, options.seeds)
        seconds[f"seconds {label}"] = (time.perf_counter() - start) / len(fits[label])
    curves = {label: measured(case, found) for label, found in fits.items()}
    constant = not any(node in case.X.columns for node in _unchanged(case))
    lines, reference = [], []
    for seed in range(options.seeds):
        free = case.answer(fits["independence + path"][0.0, seed])
        if constant:
            mean = float(case.y.mean()) if not case.labels else float((case.y == np.unique(case.y)[1]).mean())
            strict = lambda table, mean=mean: np.full(len(table), mean)  # noqa: E731
        else:
            strict = case.answer(CF1(**roles, random_state=seed).fit(case.X, case.y))
        reference.append(case.loss(strict(case.test)))
        for share in (1.0, 0.3, *SHARES, 0.001):
            s = share**0.5
            mixed = lambda table, s=s, f=free, g=strict: g(table) + s * (f(table) - g(table))  # noqa: E731
            lines.append((share, *case.measures(mixed)))
    line = pd.DataFrame(lines, columns=["gamma", "loss", "vcf", "judged"]).groupby("gamma").mean().reset_index()
    curves["line"] = line.sort_values("gamma", ascending=False, ignore_index=True)
    cf1 = float(np.mean(reference))
    row = {"process": name, "cf1": cf1, "open": case.is_open, "models": len(case.estimated)} | seconds
    for share in SHARES:
        found = {label: at_share(c["loss"], c["vcf"], share) / cf1 for label, c in curves.items()}
        judged = {label: at_share(c["loss"], c["judged"], share) for label, c in curves.items()}
        if case.is_open:
            # As `compare_routes` does: where data leave the noise itself open, no model is trained with.
            judged = {label: value for label, value in judged.items() if "counterfactual" not in label}
        best = min(judged, key=lambda label: judged[label] if np.isfinite(judged[label]) else np.inf)
        row |= {f"{label} {share:.0%}": value for label, value in found.items()}
        row |= {f"auto {share:.0%}": found[best], f"auto takes {share:.0%}": best}
    return row, curves


def _unchanged(case):
    return set(case.graph.nodes) - case.graph.descendants("A") - {"Y"}


def main():
    """Run the cases and print one table per share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--learner", default="network", choices=sorted(LEARNERS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="also without the invariant path")
    parser.add_argument("--curves", action="store_true", help="print error and VCF at each gamma")
    parser.add_argument("--only", help="names of processes, with commas between them")
    parser.add_argument("--out", help="a CSV file for the table")
    options = parser.parse_args()
    wanted = {
        name: process
        for name, process in (CHOSEN_ON | SEEN_IN_ROUTES | NEW | ROOTS).items()
        if options.only is None or name in options.only.split(",")
    }
    jobs = (delayed(study)(name, process, options) for name, process in wanted.items())
    rows = []
    for row, curves in Parallel(n_jobs=options.jobs, return_as="generator")(jobs):
        rows.append(row)
        print(row["process"], {k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        if options.curves:
            for label, curve in curves.items():
                steps = (
                    f"{r.gamma:g}: {r.loss / row['cf1']:.2f}/{r.vcf / curve['vcf'][0]:.3f}" for r in curve.itertuples()
                )
                print(f"   {label}  {'  '.join(steps)}", flush=True)
    table = pd.DataFrame(rows).set_index("process")
    if options.out:
        table.to_csv(options.out)
    for share in SHARES:
        columns = [name for name in table.columns if name.endswith(f" {share:.0%}") and "takes" not in name]
        shown = table[columns].set_axis([name.removesuffix(f" {share:.0%}") for name in columns], axis=1)
        print(f"\nError relative to CF1 at a true VCF of {share:.0%}:\n{shown.round(2).to_string()}")
        twelve = shown.loc[[name for name in TWELVE if name in shown.index]].astype(float)
        if len(twelve):
            means = np.exp(np.log(twelve).mean())
            print("geometric mean over", len(twelve), ":", {k: round(float(v), 3) for k, v in means.items()})


if __name__ == "__main__":
    main()
