"""Format of figures and differences, for the dashboard and the command line."""

from __future__ import annotations


def formatted(value: float, spec: str, *, sign: str = "") -> str:
    """Return a number in a format such as ".2f". ``sign="+"``: with its sign, which zero does not have."""
    text = f"{value:{sign}z{spec}}"
    return text if float(text) else text.removeprefix("+")
