"""Holm's correction of p values for multiple comparisons. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p values in the given order. All comparisons with a value below a hold jointly at level a.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
    The comparisons may depend on each other in any way.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda nth: p_values[nth])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, nth in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[nth]))
        adjusted[nth] = highest
    return adjusted
