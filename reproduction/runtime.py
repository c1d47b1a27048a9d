"""What the penalty costs: seconds per epoch, and the whole first figure against a literal evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.base import clone
from torch import Tensor
from tqdm import tqdm

from ciplearn.datasets import first_synthetic
from ciplearn.estimators import CIPRegressor
from ciplearn.estimators.preparation import Prepared
from ciplearn.experiments.speed import literal_hscic, paper_network, seconds
from ciplearn.learning.settings import chosen_device
from ciplearn.penalties import HSCIC
from reproduction import drawing
from reproduction.cases import OUTCOME, Case
from reproduction.first_case import FIRST, FrontierSettings
from reproduction.methods import DEFAULT, PAPER, Training, predictor
from reproduction.study import Claim, Comparison, Conditions, Findings, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "no penalty"
ONCE = "default penalty, prepared once"
IN_BATCH = "paper's penalty, solved on each batch"
LITERAL = "paper's penalty, solved for each row"

_COLOURS = {
    NONE: "#b4b9c2",
    LITERAL: "#8a8f98",
    ONCE: drawing.COLOURS[DEFAULT],
    DEFAULT: drawing.COLOURS[DEFAULT],
    IN_BATCH: drawing.COLOURS[PAPER],
    PAPER: drawing.COLOURS[PAPER],
}

# Seconds per epoch, as printed.
_PAPER = {NONE: 0.003, LITERAL: 1.112}
_PAPER_RATIO = _PAPER[LITERAL] / _PAPER[NONE]

# Where the lines are drawn.
_AT_MOST, _FASTER = 2.0, 1000


@dataclass(frozen=True)
class RuntimeSettings:
    """Of both measurements.

    Attributes
    ----------
    rows, batch_size : int
        Of the epochs that are compared.
    epochs : int
        Over which an epoch's time is averaged; a literal epoch is measured once.
    figure : FrontierSettings
        The first figure, whose total is scaled from a few epochs.
    """

    rows: int
    batch_size: int
    epochs: int
    figure: FrontierSettings


class LiteralHSCIC(HSCIC):
    """`HSCIC` as it reads: ridge weights solved anew for every row of every batch."""

    def __call__(self, y_hat: Any, right: Any, given: Any = None) -> Tensor:
        """Evaluate row by row."""
        return literal_hscic(y_hat, right, given, lengthscale=0.1, ridge=0.01)


def measure(settings: RuntimeSettings, conditions: Conditions) -> dict[str, pd.DataFrame]:
    """Time epochs, then the figure."""
    with tqdm(total=7, disable=not conditions.verbose, unit="measurement") as bar:
        epochs = _epochs(settings, conditions, bar)
        figure = _whole_figure(settings, conditions, bar)
    return {"epochs": epochs, "figure": figure}


def judge(tables: Mapping[str, pd.DataFrame], settings: RuntimeSettings) -> Findings:
    """Compare the times."""
    epochs, figure = tables["epochs"], tables["figure"]
    return Findings(
        comparisons=(
            Comparison(
                f"Seconds per epoch of the paper's network, {settings.rows} rows, batch {settings.batch_size}.",
                _epoch_table(epochs),
            ),
            Comparison(
                f"The networks of the first figure, {_networks(settings.figure)} a method, "
                f"{settings.figure.epochs} epochs each, scaled from a few epochs.",
                _figure_table(figure),
            ),
        ),
        claims=_claims(epochs, figure),
        figure=_figure(epochs, figure),
        caption="Time of an epoch, and of all trainings of the first figure, on a logarithmic scale",
        notes=(
            "Times are of this run on this machine and change from run to run; ratios are what to look at.",
            "The literal evaluation is measured on one epoch in the same training loop and scaled by epochs and "
            "networks. Ours include the preparation of the operator; on a GPU all networks are trained as one stack, "
            "on a CPU one by one in one process.",
        ),
    )


def _epochs(settings: RuntimeSettings, conditions: Conditions, bar: Any) -> pd.DataFrame:
    case = Case.draw(first_synthetic(), int(settings.rows / 0.8), conditions.seed)
    training = Training(1, settings.batch_size)
    literal = _literal(case, training, conditions.device)
    models = {
        NONE: literal.set_params(gamma=0.0),
        ONCE: clone(literal).set_params(gamma=1.0, penalty=None, prepare_once=True),
        IN_BATCH: clone(literal).set_params(gamma=1.0, penalty=HSCIC.paper()),
    }
    rows = []
    for name, model in models.items():
        few, many = (min(_fit_seconds(model, case, n) for _ in range(3)) for n in (2, 2 + settings.epochs))
        rows.append({"method": name, "seconds": _an_epoch(few, many, settings.epochs)})
        bar.update()
    rows.append({"method": LITERAL, "seconds": _fit_seconds(_literal(case, training, conditions.device), case, 1)})
    bar.update()
    return pd.DataFrame(rows)


def _whole_figure(settings: RuntimeSettings, conditions: Conditions, bar: Any) -> pd.DataFrame:
    figure = settings.figure
    case = Case.draw(first_synthetic(), figure.rows, conditions.seed)
    pairs = [(gamma, seed) for seed in conditions.seeds(figure.seeds) for gamma in figure.gammas if gamma > 0]
    rows = []
    for method in (PAPER, DEFAULT):
        model = predictor(method, case, figure.training, conditions.device)
        # A stack's epochs are short beside its preparation: many of them tell what one costs.
        more = 100 if _as_one_stack(model) else 10
        few, many = (_sweep_seconds(model, case, pairs, count) for count in (2, 2 + more))
        rows.append({"method": method, "seconds": few + _an_epoch(few, many, more) * (figure.epochs - 2)})
        bar.update()
    one = _fit_seconds(_literal(case, figure.training, conditions.device), case, 1)
    rows.append({"method": LITERAL, "seconds": one * figure.epochs * len(pairs)})
    bar.update()
    return pd.DataFrame(rows)


def _literal(case: Case, training: Training, device: str) -> CIPRegressor:
    model = predictor(PAPER, case, replace(training, epochs=1), device)
    module = partial(paper_network, len(case.inputs))
    return model.set_params(penalty=LiteralHSCIC.paper(), prepare_once=False, module=module, gamma=1.0, random_state=0)


def _fit_seconds(model: CIPRegressor, case: Case, epochs: int) -> float:
    fresh = clone(model).set_params(epochs=epochs)
    return seconds(lambda: fresh.fit(case.train[case.inputs], case.train[OUTCOME]))


def _an_epoch(few: float, many: float, more: int) -> float:
    """Seconds per epoch, from trainings of 2 and of 2 + ``more`` epochs; what comes once cancels.

    On a machine so busy that the longer training was the shorter one, all of it counts.
    """
    return (many - few) / more if many > few else many / (2 + more)


def _sweep_seconds(model: CIPRegressor, case: Case, pairs: list[tuple[float, int]], epochs: int) -> float:
    """Seconds to train all networks: as one stack where that pays, else one by one, from the first."""
    fresh = clone(model).set_params(epochs=epochs)
    if _as_one_stack(fresh):
        return seconds(lambda: Prepared.of(fresh, case.train[case.inputs], case.train[OUTCOME]).stacked(pairs))
    gamma, seed = pairs[0]
    return _fit_seconds(fresh.set_params(gamma=gamma, random_state=seed), case, epochs) * len(pairs)


def _as_one_stack(model: CIPRegressor) -> bool:
    return chosen_device(model.device).type == "cuda" and model.prepare_once


def _networks(figure: FrontierSettings) -> int:
    return figure.seeds * sum(gamma > 0 for gamma in figure.gammas)


def _claims(epochs: pd.DataFrame, figure: pd.DataFrame) -> tuple[Claim, ...]:
    took = epochs.set_index("method")["seconds"]
    ratio = float(took[ONCE] / took[NONE])
    claims = [
        Claim(
            "An epoch with the penalty costs at most twice one without",
            f"ratio of times {ratio:.2f} (at most {_AT_MOST:g}; printed {_PAPER_RATIO:.0f})",
            ratio <= _AT_MOST,
            DEFAULT,
            ratio,
        )
    ]
    total = figure.set_index("method")["seconds"]
    for method in (PAPER, DEFAULT):
        faster = float(total[LITERAL] / total[method])
        statistic = (
            f"{_duration(total[LITERAL])} against {_duration(total[method])}: {faster:.0f} times (at least {_FASTER})"
        )
        claims.append(
            Claim(
                f"The whole first figure is {_FASTER} times faster than with a literal HSCIC",
                statistic,
                faster >= _FASTER,
                method,
                faster,
            )
        )
    return tuple(claims)


def _epoch_table(epochs: pd.DataFrame) -> pd.DataFrame:
    base = float(epochs.set_index("method").loc[NONE, "seconds"])
    rows = []
    for row in epochs.itertuples():
        printed = _PAPER.get(str(row.method))
        rows.append(
            {
                "": row.method,
                "paper": "—" if printed is None else f"{printed:g} s",
                "ours": f"{row.seconds:.4f} s",
                "ratio, paper": "—" if printed is None else f"{printed / _PAPER[NONE]:.0f}",
                "ratio, ours": f"{row.seconds / base:.2f}",
            }
        )
    return pd.DataFrame(rows)


def _figure_table(figure: pd.DataFrame) -> pd.DataFrame:
    literal = float(figure.set_index("method").loc[LITERAL, "seconds"])
    return pd.DataFrame(
        [
            {
                "": row.method,
                "time": _duration(row.seconds),
                "times faster than literal": f"{literal / row.seconds:.0f}",
            }
            for row in figure.itertuples()
        ]
    )


def _duration(value: float) -> str:
    if value < 1:
        return f"{value * 1e3:.1f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


def _figure(epochs: pd.DataFrame, figure: pd.DataFrame) -> Figure:
    from matplotlib.ticker import NullFormatter

    drawn, axes = drawing.panels(1, 2, width=7.6, height=1.9)
    titles = ("an epoch, seconds", "all trainings of the first figure, seconds")
    for ax, table, title in zip((axes[0][0], axes[1][0]), (epochs, figure), titles, strict=True):
        colours = [_COLOURS[name] for name in table["method"]]
        bars = ax.barh(table["method"], table["seconds"], color=colours, height=0.6)
        ax.bar_label(bars, [_duration(value) for value in table["seconds"]], padding=4, fontsize=9)
        ax.set_xscale("log")
        # From a decade below the shortest, with room for the longest bar's label.
        ax.set_xlim(table["seconds"].min() / 10, table["seconds"].max() * 8)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.invert_yaxis()
        ax.set_title(title, loc="left", fontsize=10)
    return drawn


STUDY = Study(
    name="runtime",
    title="Runtime",
    presets={
        "quick": RuntimeSettings(rows=1000, batch_size=256, epochs=20, figure=FIRST["quick"]),
        "paper": RuntimeSettings(rows=1000, batch_size=512, epochs=200, figure=FIRST["paper"]),
    },
    measure=measure,
    judge=judge,
    paper={"seconds per epoch": {"without penalty": 0.003, "with penalty": 1.112}},
)
