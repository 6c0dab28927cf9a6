"""Variants of the operation comparison that the published description leaves open.

It specifies only the vocabulary and lower-casing. It does not say whether a token counts once or as often as it occurs,
nor whether the value of a click counts. Reports contain all variants.
"""

from __future__ import annotations

from enum import StrEnum


class Counting(StrEnum):
    """Token counting: each distinct token once, or every occurrence."""

    SET = "set"
    MULTISET = "multiset"


class Reading(StrEnum):
    """One combination of choices. ``set`` (recommended) and ``multiset`` ignore the value of a click."""

    SET = "set"
    MULTISET = "multiset"
    SET_VALUE_KEPT = "set_value_kept"
    MULTISET_VALUE_KEPT = "multiset_value_kept"

    @classmethod
    def of(cls, counting: Counting, *, keep_click_value: bool = False) -> Reading:
        return cls(f"{counting}_value_kept" if keep_click_value else str(counting))
