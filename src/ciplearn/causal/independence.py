"""`Independence`: a conditional independence statement as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ciplearn._core.errors import InputError
from ciplearn._core.wording import as_list, as_set
from ciplearn.causal.names import Names, as_names, in_order

PREDICTOR = "Ŷ"

# Names of a set that stand in a sentence; signs name them all.
_SHOWN = 6


@dataclass(frozen=True, init=False)
class Independence:
    """left ⊥ right | given: once `given` is known, `right` says nothing more about `left`.

    Names stand in natural order, so that statements with the same content are equal, hash alike and print alike.

    Attributes
    ----------
    right : tuple of str
        The variables that must say nothing more, (A ∪ W) ∖ S for the statement of a criterion.
    given : tuple of str
        The conditioning variables S.
    left : tuple of str
        The predictor Ŷ, unless the statement speaks of the graph's own nodes.

    Examples
    --------
    >>> from ciplearn import Independence
    >>> print(Independence(right=["L", "A"], given=["S"]))
    Ŷ ⊥ {A, L} | {S}
    """

    right: tuple[str, ...]
    given: tuple[str, ...]
    left: tuple[str, ...]

    def __init__(self, right: Names, given: Names = (), left: Names = PREDICTOR) -> None:
        for side, names in (("right", right), ("given", given), ("left", left)):
            object.__setattr__(self, side, in_order(as_names(names, side)))
        for side in ("right", "left"):
            if not getattr(self, side):
                raise InputError(
                    f"An independence needs variables on both sides, but {side} is empty; name at least one."
                )
        for one, other in (("right", "given"), ("left", "right"), ("left", "given")):
            if both := set(getattr(self, one)) & set(getattr(self, other)):
                raise InputError(
                    f"The sides of an independence must not overlap, but {as_set(in_order(both))} is in {one} and in "
                    f"{other}; keep each name on one side."
                )

    def __str__(self) -> str:
        left = self.left[0] if len(self.left) == 1 else as_set(self.left)
        given = f" | {as_set(self.given)}" if self.given else ""
        return f"{left} ⊥ {as_set(self.right)}{given}"

    def in_words(self) -> str:
        """Say what `left` does: ``tells nothing about A and L among rows with the same S``; six names of many."""
        among = f" among rows with the same {as_list(self.given, _SHOWN)}" if self.given else ""
        return f"tells nothing about {as_list(self.right, _SHOWN)}{among}"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-ready data."""
        return {"left": list(self.left), "right": list(self.right), "given": list(self.given), "text": str(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Independence:
        """Read what `to_dict` wrote."""
        return cls(right=content["right"], given=content["given"], left=content["left"])
