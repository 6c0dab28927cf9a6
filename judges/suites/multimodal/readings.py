"""The ways to compare operations that the published description leaves open.

It names the vocabulary and the lower-casing and no more: whether a token counts once or as often as it occurs, and
whether a click's value counts, is a choice. Reports give all readings.
"""

from __future__ import annotations

from enum import StrEnum


class Counting(StrEnum):
    """How tokens are counted: each once, or as often as it occurs."""

    SET = "set"
    MULTISET = "multiset"


class Reading(StrEnum):
    """A whole reading. The first, the recommended one, and the second leave the value of a click out."""

    SET = "set"
    MULTISET = "multiset"
    SET_VALUE_KEPT = "set_value_kept"
    MULTISET_VALUE_KEPT = "multiset_value_kept"

    @classmethod
    def of(cls, counting: Counting, *, keep_click_value: bool = False) -> Reading:
        return cls(f"{counting}_value_kept" if keep_click_value else str(counting))
