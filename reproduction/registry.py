"""Which studies there are; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from ciplearn._core.errors import InputError
from reproduction.study import Study

# Name on the command line -> module of this package that holds STUDY. `all` runs these, in this order.
SYNTHETIC: dict[str, str] = {
    "fig2-left": "fig2_left",
    "fig2-middle": "fig2_middle",
    "fig2-right": "fig2_right",
    "fig3": "fig3",
    "gamma-choice": "gamma_choice",
    "runtime": "runtime",
    "veitch": "veitch",
    "heuristics": "heuristics",
}

# Studies with pictures, outside data or no figure of the paper's, run by their own name only.
OTHERS: dict[str, str] = {"dsprites": "dsprites", "adult": "adult", "reasons": "reasons"}

# The paper's other name for the same result.
_ALIASES = {"table1": "fig2-right"}

ALL = "all"


def names() -> tuple[str, ...]:
    """Every name that can be asked for."""
    return (*SYNTHETIC, *OTHERS, *_ALIASES, ALL)


def order() -> tuple[str, ...]:
    """Studies in the order in which they are shown."""
    return (*SYNTHETIC, *OTHERS)


def find(name: str) -> tuple[Study, ...]:
    """Return the study of this name, or all synthetic ones."""
    if name == ALL:
        return tuple(_load(module) for module in SYNTHETIC.values())
    chosen = _ALIASES.get(name, name)
    module = SYNTHETIC.get(chosen) or OTHERS.get(chosen)
    if module is None:
        raise InputError(f"There is no study {name!r}; name one of {', '.join(names())}.")
    return (_load(module),)


def _load(module: str) -> Study:
    study: Study = import_module(f"reproduction.{module}").STUDY
    return study
