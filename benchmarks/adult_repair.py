"""Adult, age and sex protected: AUC against the VCF that is left, of boosted trees and of what repair makes of them.

The causal model that judges is estimated from half of the test rows, and VCF is measured on the other half; AUC is on
all test rows. Nothing here is chosen on test rows.

Run: python benchmarks/adult_repair.py --data FOLDER [--seed 0] [--rows 30162]
"""

import argparse
import time

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from ciplearn import CIPClassifier, fit_scm, variance_of_counterfactuals
from ciplearn.datasets import graphs, load_adult
from ciplearn.learners import Boosted
from ciplearn.repairing.correction import Correction
from ciplearn.repairing.flow import ground
from ciplearn.repairing.formula import Formula

PROTECTED, OUTCOME = ["age", "sex"], "income"
STRENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf)


class Along:
    """One engine at several strengths: a predictor with one output per strength."""

    def __init__(self, engine, columns):
        self.engine, self.columns = engine, columns

    def predict(self, rows):
        """Return one answer per strength."""
        knob = self.engine.knob(rows[self.columns])
        return np.stack([knob.at(strength)[:, -1] for strength in STRENGTHS], axis=1)


def main():
    """Read what is asked, and print a line per engine and strength."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load_adult(options.data)
    train, test = data.train, data.test
    if options.rows:
        train = train.sample(options.rows, random_state=options.seed)
    graph = graphs.adult_columns()
    columns = [name for name in train.columns if name != OUTCOME]
    started = time.process_time()
    roles = {"graph": graph, "outcome": OUTCOME, "protected": PROTECTED}
    model = CIPClassifier(**roles, learner=Boosted(), gamma=0, random_state=options.seed, on_violation="warn")
    model.fit(train[columns], train[OUTCOME])
    trained = time.process_time()
    generator = np.random.default_rng(options.seed)
    asked, worlds, known = ground(model, train, graph, OUTCOME, PROTECTED, None, columns, generator)
    corrected = Correction.of(asked, worlds, known, generator)
    print(f"trees {trained - started:.0f} s, correction {time.process_time() - trained:.0f} s", flush=True)
    half = test.sample(frac=0.5, random_state=options.seed)
    judge = fit_scm(graph, half, random_state=options.seed)
    judged = test.drop(half.index)
    truth = (test[OUTCOME] == sorted(test[OUTCOME].unique())[1]).to_numpy()
    for name, engine in (("correction", corrected), ("formula", Formula(asked, worlds))):
        along = Along(engine, columns)
        spread = variance_of_counterfactuals(
            along, judge, judged, PROTECTED, 600, 16, options.seed, inputs=columns, n_draws=6
        )
        vcf = np.array(list(spread.per_output.values()))
        answers = along.predict(test)
        for place, strength in enumerate(STRENGTHS):
            auc = roc_auc_score(truth, answers[:, place])
            print(f"{name} at {strength:g}: AUC {auc:.4f}, VCF left {vcf[place] / vcf[0]:.1%}", flush=True)


if __name__ == "__main__":
    main()
