"""The closed form against trained routes, and on tables of labels whose true counterfactuals are known.

``processes``: test error relative to CF1's where the true VCF has fallen to 5 % and to 1 % of the unconstrained one, of
the formula on the unconstrained network and on boosted trees; the causal model is estimated from the training rows.
``tables``: twenty tables of labels with a binary attribute at the root, 800 to 3 000 rows, split 70 / 30; AUC, the
share of the total effect mean |p(row) − p(row in the other world)| that is left, and seconds.

Run: python benchmarks/repair.py processes [--seeds 1] [--epochs 100] [--only "linear,wavy"] [--trees]
     python benchmarks/repair.py tables [--count 20]
"""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from frontier_quality import SHARES, TWELVE, Case, _unchanged, at_share
from lightgbm import LGBMClassifier, LGBMRegressor
from processes import CHOSEN_ON, NEW, ROOTS, SEEN_IN_ROUTES
from sklearn.metrics import roc_auc_score

from ciplearn import CausalGraph, CIPClassifier, CIPRegressor, repair
from ciplearn.baselines import CF1, CF2
from ciplearn.estimators.preparation import Prepared

STRENGTHS = [0.0, *np.geomspace(0.05, 2000, 40), np.inf]


def curve(case, model):
    """Test loss and true VCF of the repaired model at every strength."""
    repaired = repair(model, case.train, outcome="Y", protected=["A"], scm=case.estimated[0])
    count, table = case.worlds
    # What the estimated model holds for impossible is taken for the nearest that it knows, as `predict` does.
    shown, moved = (repaired.worlds.checked(rows.reset_index(drop=True)) for rows in (case.test, table))
    at_test, in_worlds = repaired.engine.knob(shown), repaired.engine.knob(moved)
    rows = []
    for gamma in STRENGTHS:
        spread = in_worlds.at(gamma)[:, 0].reshape(count, -1).var(axis=0).mean()
        rows.append((case.loss(at_test.at(gamma)[:, 0]), float(spread)))
    return pd.DataFrame(rows, columns=["loss", "vcf"])


def processes(options):
    """Print one line per process, and geometric means."""
    wanted = {
        name: process
        for name, process in (CHOSEN_ON | SEEN_IN_ROUTES | NEW | ROOTS).items()
        if (name not in SEEN_IN_ROUTES if options.only is None else name in options.only.split(","))
    }
    rows = []
    for name, process in wanted.items():
        started = time.perf_counter()
        case = Case(name, process())
        roles = {"graph": case.graph, "outcome": "Y", "protected": ["A"], "epochs": options.epochs}
        kind = CIPClassifier if case.labels else CIPRegressor
        found, losses = {}, []
        for seed in range(options.seeds):
            network = Prepared.of(kind(**roles), case.X, case.y).trained(0.0, random_state=seed)
            found.setdefault("network", []).append(curve(case, network))
            if options.trees:
                trees = (LGBMClassifier if case.labels else LGBMRegressor)(
                    n_estimators=300, learning_rate=0.05, verbose=-1
                )
                found.setdefault("trees", []).append(curve(case, trees.fit(case.X, case.y)))
            losses.append(_strict_loss(case, roles, seed))
        row = {"process": name, "cf1": np.mean(losses)}
        for label, curves in found.items():
            mean = sum(curves) / len(curves)
            row[f"{label} alone"] = mean["loss"][0] / row["cf1"]
            row |= {f"{label} {share:.0%}": at_share(mean["loss"], mean["vcf"], share) / row["cf1"] for share in SHARES}
            row[f"{label} least VCF"] = (mean["vcf"] / mean["vcf"][0]).min()
        rows.append(row | {"seconds": time.perf_counter() - started})
        print(
            {key: round(value, 3) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True
        )
    table = pd.DataFrame(rows).set_index("process")
    print(table.round(3).to_string())
    kept = table.loc[[name for name in table.index if name in [*TWELVE, *ROOTS] and name != "scenario 1"]]
    print("geometric means without scenario 1:", np.exp(np.log(kept.filter(like="%")).mean()).round(3).to_dict())


def _strict_loss(case, roles, seed):
    if any(node in case.X.columns for node in _unchanged(case)):
        return case.loss(case.answer(CF1(**roles, random_state=seed).fit(case.X, case.y))(case.test))
    mean = float(case.y.mean()) if not case.labels else float((case.y == np.unique(case.y)[1]).mean())
    return case.loss(np.full(len(case.test), mean))


def made_up(seed):
    """A table with a binary root A, a graph, and the same people had A been the other value."""
    draw = np.random.default_rng(seed)
    n, width = int(draw.integers(800, 3001)), int(draw.integers(4, 9))
    names = [f"x{place}" for place in range(width)]
    edges, equations = [], {}
    for place, name in enumerate(names):
        parents = [other for other in names[:place] if draw.random() < 0.35]
        from_a = place > 0 and draw.random() < 0.6
        bent = draw.random() < 0.4
        weights = draw.normal(size=len(parents) + 1) * [*([0.7] * len(parents)), 1.2]
        equations[name] = (parents, from_a, bent, weights, draw.random() < 0.25 and place > 1)
        edges += [(parent, name) for parent in parents] + ([("A", name)] if from_a else [])
    last = draw.normal(size=width + 1)
    edges += [(name, "Y") for name in names] + [("A", "Y")]
    noise = {name: draw.normal(size=n) for name in names}
    a, luck = draw.integers(2, size=n), draw.logistic(size=n)

    def world(a):
        values = {"A": a}
        for name, (parents, from_a, bent, weights, binary) in equations.items():
            total = sum((w * values[p] for w, p in zip(weights, parents, strict=False)), weights[-1] * a * from_a)
            total = (np.tanh(total) * 1.5 if bent else total) + noise[name]
            values[name] = (total > 0).astype(float) if binary else total
        score = sum(w * values[name] for w, name in zip(last, names, strict=False)) * 0.6 + 0.8 * a
        values["Y"] = np.where(score - score.mean() * 0.5 + luck > 0, "yes", "no")
        return pd.DataFrame(values)

    return CausalGraph.from_edges(edges), world(a), world(1 - a)


def additive(seed):
    """The same for a table whose rows tell their noise, with a bent score; A moves some columns."""
    draw = np.random.default_rng([77, seed])
    n, moved, fair = int(draw.integers(1100, 4300)), int(draw.integers(1, 4)), int(draw.integers(0, 3))
    hidden, direct = draw.random() < 0.4, draw.random() < 0.5
    a = (draw.random(n) < draw.uniform(0.3, 0.7)).astype(int)
    noise = {f"b{i}": draw.normal(size=n) * draw.uniform(0.5, 1.5) for i in range(moved)}
    noise |= {f"f{i}": draw.normal(size=n) for i in range(fair)}
    by_a = {name: draw.normal() * 1.2 for name in noise}
    weight = {name: draw.normal() for name in noise}
    bent = {name: draw.random() < 0.4 for name in noise}
    by_fair = {f"b{i}": draw.normal() * (draw.random() < 0.4) * (fair > 0) for i in range(moved)}
    at_once = draw.normal() * direct
    rest = draw.normal(size=n) * hidden + draw.normal(size=n) * draw.uniform(0.5, 2)
    share = draw.uniform(0.3, 0.7)

    def world(a):
        values = {name: each for name, each in noise.items() if name.startswith("f")}
        for name in by_fair:
            values[name] = by_a[name] * a + by_fair[name] * values.get("f0", 0) + noise[name]
        score = sum(weight[name] * (0.6 * values[name] ** 2 if bent[name] else values[name]) for name in noise)
        return pd.DataFrame({"A": a, **values}), score + at_once * a + rest

    (here, score), (there, moved_score) = world(a), world(1 - a)
    cut = np.quantile(score, share)
    edges = [(name, "Y") for name in noise] + [("A", name) for name in by_fair] + [("A", "Y")] * direct
    edges += [("f0", name) for name, effect in by_fair.items() if effect]
    yes = [np.where(each > cut, "yes", "no") for each in (score, moved_score)]
    return CausalGraph.from_edges(edges), here.assign(Y=yes[0]), there.assign(Y=yes[1])


_BENDS = {
    "line": lambda total: total,
    "tanh": lambda total: 2 * np.tanh(total),
    "hinge": lambda total: np.maximum(total, 0),
    "wave": lambda total: np.sin(2 * total),
}


def bent(seed):
    """The same for a random graph in which every column is a bent sum of others, with additive noise."""
    draw = np.random.default_rng([977, seed])
    n, width = int(draw.integers(1150, 4300)), int(draw.integers(3, 9))
    a = (draw.random(n) < draw.uniform(0.3, 0.7)).astype(int)
    names = [f"x{place}" for place in range(width)]
    weights, bends, widths = {}, {}, {}
    for place, name in enumerate(names):
        parents = [other for other in names[:place] if draw.random() < 0.4] + ["A"] * (draw.random() < 0.45)
        weights[name] = {parent: 1.1 * draw.normal() for parent in parents}
        bends[name] = _BENDS[draw.choice([*_BENDS], p=[0.5, 0.2, 0.2, 0.1])]
        widths[name] = draw.uniform(0.3, 1.2)
    if not any("A" in parents for parents in weights.values()):
        weights[names[-1]]["A"] = 1.2
    noise = {name: widths[name] * draw.normal(size=n) for name in names}
    causes = [name for name in names if draw.random() < 0.7] or names[-1:]
    direct = draw.random() < 0.5
    of_y = {name: draw.normal() for name in causes} | {"A": draw.normal() * direct}
    luck, share = draw.normal(size=n) * draw.uniform(0.4, 1.5), draw.uniform(0.3, 0.7)

    def world(a):
        values = {"A": a}
        for name in names:
            total = sum((w * values[p] for p, w in weights[name].items()), np.zeros(n))
            values[name] = bends[name](total) + noise[name]
        return pd.DataFrame(values), sum(w * values[name] for name, w in of_y.items()) + luck

    (here, score), (there, moved_score) = world(a), world(1 - a)
    edges = [(parent, name) for name, parents in weights.items() for parent in parents]
    edges += [(name, "Y") for name in causes] + [("A", "Y")] * direct
    cut = np.quantile(score, share)
    yes = [np.where(each > cut, "yes", "no") for each in (score, moved_score)]
    graph = CausalGraph.from_edges(edges, nodes=["A", *names, "Y"])
    return graph, here.assign(Y=yes[0]), there.assign(Y=yes[1])


MADE = {"mixed": made_up, "additive": additive, "bent": bent}


def tables(options):
    """Print one line per table, and means."""
    rows = []
    for seed in range(options.count):
        graph, table, other = made_up(seed)
        cut = int(0.7 * len(table))
        train, test = table.iloc[:cut], table.iloc[cut:].reset_index(drop=True)
        there = other.iloc[cut:].reset_index(drop=True).drop(columns="Y")
        X, truth = test.drop(columns="Y"), test["Y"] == "yes"
        roles = {"graph": graph, "outcome": "Y", "protected": ["A"]}
        network = Prepared.of(CIPClassifier(**roles), train.drop(columns="Y"), train["Y"]).trained(0.0, random_state=0)
        started = time.perf_counter()
        repaired = repair(network, train, **roles)
        row = {"rows": len(table), "seconds": time.perf_counter() - started, "rests on": repaired.rests_on}
        models = {"network": network, **{f"γ {g:g}": repaired.at(g) for g in (4, 16)}, "strict": repaired.strict()}
        models["CF2"] = CF2(**roles, random_state=0).fit(train.drop(columns="Y"), train["Y"])
        for name, model in models.items():
            here, moved = (model.predict_proba(rows)[:, 1] for rows in (X, there))
            row |= {f"AUC {name}": roc_auc_score(truth, here), f"effect {name}": np.abs(here - moved).mean()}
        rows.append(row)
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    found = pd.DataFrame(rows)
    print(found.select_dtypes("number").mean().round(4).to_string())
    effects = found.filter(like="effect ").mean()
    print("share of the total effect left:", (effects / effects["effect network"]).round(3).to_dict())
    print("rests on:", found["rests on"].value_counts().to_dict())


def main():
    """Read what is asked."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["processes", "tables"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--only")
    parser.add_argument("--trees", action="store_true", help="boosted trees, too")
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    {"processes": processes, "tables": tables}[options.what](options)


if __name__ == "__main__":
    main()
