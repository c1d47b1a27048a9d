"""How to train, as it is typed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn.cli.options import GoalOptions, goal, named_goal
from ciplearn.cli.output import note
from ciplearn.cli.parsing import choice, of_panel, share

# Least epochs and least steps of a training, gammas to try. Steps, because a small table has few of them per epoch.
_PRESETS = {"quick": (10, 500, 6), "standard": (20, 2000, 9), "thorough": (60, 6000, 12)}

AUTO, REPAIR, INDEPENDENCE = "auto", "repair", "independence"

# What may be lost where nothing was said: a tenth of what an unconstrained predictor explains.
_TOLERANCE = "10%"

_choice = of_panel("Route, penalty and gamma", hidden=True)
_network = of_panel("Network", hidden=True)


@dataclass(frozen=True)
class Plan(GoalOptions):
    """What is asked of a predictor, and how it is trained; `settled` brings both together."""

    tolerance: str | None = goal(
        "The paper's way to ask: vary as little as possible, and lose at most this share of what a predictor without a "
        "penalty explains: 10%.",
        "SHARE",
        hidden=True,
    )
    learner: str = goal("network, boosted or linear. Default: the best.", "NAME", default=AUTO, show_default=False)
    route: str = _choice(
        "repair changes a model as little as possible, in seconds; independence, counterfactual, line or left-out (the "
        "protected columns are not looked at) trains along that route, within the tolerance. auto is repair, or all "
        "trained routes with --tolerance. With --gamma or --penalty: independence.",
        "ROUTE",
        default=AUTO,
    )
    gamma: float | None = _choice("Weight of the penalty.", "NUMBER", min=0, max=1e9)
    measure: str | None = _choice(
        "What the tolerance is about: loss (squared error or log loss, the default), score (R² or accuracy), auc or "
        "balanced_accuracy.",
        "NAME",
    )
    penalty: str | None = _choice(
        "residual-hscic, hscic, hscic-paper, circe, hsic or mmd. Default: residual-hscic, or hsic where nothing is "
        "conditioned on.",
        "NAME",
    )
    compare: bool = _choice("With --gamma, also train without a penalty, to show what it costs.", default=True)
    refit: bool = _choice(
        "Train once more on the rows that judged, too, instead of keeping the model.", None, "--refit", default=False
    )
    on_violation: str = _choice(
        "raise or warn, where the graph does not certify the statement.", "WORD", default="raise"
    )
    preset: str = _network("quick, standard or thorough: epochs and gammas to try.", "NAME", default="standard")
    epochs: int | None = _network("Instead of the preset's.", "NUMBER", min=1)
    batch_size: int = _network("Rows of a step.", "NUMBER", default=256, min=2)
    learning_rate: float = _network("Of Adam.", "NUMBER", default=3e-3, min=0)
    hidden: str = _network("Widths of the hidden layers.", "NUMBERS", default="64,64")
    device: str = _network("auto, cpu or cuda.", "NAME", default="auto")

    def settled(self) -> Plan:
        """Return the plan with the route that its options mean together; refuse options that contradict each other."""
        gamma, tolerance, route = self.gamma, self.tolerance, self.route
        if tolerance is not None and share("--tolerance", tolerance) > 1:
            note(f"A tolerance of {tolerance} allows to lose more than all that is explained; a tenth of it is 10%.")
        if self.vcf is not None:
            share("--vcf", self.vcf, 1)
        if gamma is not None and tolerance is not None:
            raise InputError(f"Both --gamma {gamma:g} and --tolerance {tolerance} were given; pass one of them.")
        choice("--preset", self.preset, _PRESETS)
        # What is registered is loaded where it is asked for.
        if route != AUTO:
            from ciplearn.routes import ROUTES

            choice("--route", route, (AUTO, *ROUTES))
        if self.learner != AUTO:
            from ciplearn.learners import LEARNERS

            choice("--learner", self.learner, (AUTO, *LEARNERS))
        if gamma is not None or self.penalty is not None or self.refit:
            if route not in (AUTO, INDEPENDENCE):
                raise InputError(f"--gamma, --penalty and --refit are for the independence route, got --route {route}.")
            route = INDEPENDENCE
        if self._named and route not in (AUTO, REPAIR):
            raise InputError(f"--{self._named} is met by repair, got --route {route}; leave one of them out.")
        return replace(self, route=route, measure=self.measure or "loss")

    def streamed(self) -> Plan:
        """Return the plan for a table beyond memory, which is trained with a penalty, batch by batch."""
        asked = "route repair" if self.route == REPAIR else self._named
        if asked:
            raise InputError(
                f"--{asked} needs a table in memory, got one that streams; pass --tolerance, or fewer rows."
            )
        return replace(self, tolerance=_TOLERANCE) if self.by_goal else self

    @property
    def _named(self) -> str:
        """The goal that only repair meets, as an option is called."""
        goals = {"max_effect": self.max_effect, "vcf": self.vcf, "strict": self.strict, "tolerance": self.tolerance}
        return named_goal(**goals).replace("tolerance", "")

    @property
    def by_goal(self) -> bool:
        """Whether candidates are compared for a goal, instead of within a tolerance or at a gamma."""
        return self.route in (AUTO, REPAIR) and self.tolerance is None

    @property
    def allowed(self) -> float | None:
        """What a search may lose; None where gamma is fixed, or another goal is set."""
        if self.gamma is not None or self.by_goal:
            return None
        return share("--tolerance", self.tolerance or _TOLERANCE)

    @property
    def trials(self) -> int:
        """The largest number of gammas to try."""
        return _PRESETS[self.preset][2]

    def network(self, n_rows: int) -> Mapping[str, Any]:
        """Return the settings of a network for so many training rows."""
        return {
            "epochs": self.epochs or epochs_of(self.preset, n_rows, self.batch_size),
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "hidden": self.widths,
            "device": self.device,
            "early_stopping": True,
        }

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the hidden layers."""
        try:
            widths = tuple(int(width) for width in self.hidden.split(",") if width.strip())
        except ValueError:
            widths = (0,)
        if any(width < 1 for width in widths):
            raise InputError(f"--hidden must be whole numbers above zero, got {self.hidden!r}; pass for example 64,64.")
        return widths


def epochs_of(preset: str, rows: int, batch_size: int) -> int:
    """Return the epochs of a preset for so many rows."""
    epochs, steps, _ = _PRESETS[preset]
    return max(epochs, math.ceil(steps / math.ceil(rows / batch_size)))
