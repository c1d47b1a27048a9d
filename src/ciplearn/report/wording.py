"""Numbers as they stand in sentences."""

from __future__ import annotations


def short(value: float) -> str:
    """Write a number with three digits, without noise."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", " ")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
