"""Options of suite runs. Imports only the standard library, so the command line loads them quickly."""

from __future__ import annotations

from enum import StrEnum

MAX_HTML_CHARS = 6000
"""Default bound of the page in the guide's question."""


class Protocol(StrEnum):
    """How a model is asked about a step."""

    TOURNAMENT = "tournament"
    """Published protocol: rounds of five candidates until one is left."""
    GUIDE = "guide"
    """Protocol of the integration guide: one question with all kept candidates."""


class Metric(StrEnum):
    """Criterion for a successful step."""

    MINDACT = "mindact"
    """Published metric: correct element and operation F1 of 1."""
    ACTION = "action"
    """Metric of the integration guide: correct element and correct operation, ignoring the value."""


class NoPositive(StrEnum):
    """Policy for steps without a correct element within top k, and for those that have no other element (guide)."""

    ZERO = "zero"
    """They fail, as in the paper."""
    SKIP = "skip"
    """They are excluded from all figures."""


class Shuffle(StrEnum):
    """How the seed determines the order of play. Both are reproducible, even if a run is interrupted and resumed."""

    STEP = "step"
    """One generator per step: the order of a step does not depend on the other steps."""
    STREAM = "stream"
    """One generator for all steps in the order of the data, like a seeded run of the published script."""


class Unplayed(StrEnum):
    """Reason why no question was asked about a step."""

    NO_POSITIVE = "no_positive"
    """HTML cleaning removed the correct element."""
    OUTSIDE_TOP_K = "positive_outside_top_k"
    """The ranker put every correct element outside of the top k."""
    NO_NEGATIVE = "no_negative"
    """Guide: no other element is within the top k, so there is nothing to choose from."""
    SINGLE = "single_candidate"
    """Only one candidate is within the top k: no question is asked, and the step fails."""


DROPPABLE = (Unplayed.NO_POSITIVE, Unplayed.OUTSIDE_TOP_K, Unplayed.NO_NEGATIVE)
"""Reasons for which ``NoPositive`` decides whether a step fails or is excluded."""
STEP_RULES = {Metric.MINDACT: "element+op_f1", Metric.ACTION: "element+action"}


class Counting(StrEnum):
    """Token counting: each distinct token once, or every occurrence."""

    SET = "set"
    MULTISET = "multiset"


class Reading(StrEnum):
    """Variant of the comparison of operations in Multimodal-Mind2Web~, whose published description leaves it open.

    It specifies only the vocabulary and lower-casing. It does not say whether a token counts once or as often as it
    occurs, nor whether the value of a click counts. Reports contain all variants; ``set`` is recommended.
    """

    SET = "set"
    MULTISET = "multiset"
    SET_VALUE_KEPT = "set_value_kept"
    MULTISET_VALUE_KEPT = "multiset_value_kept"

    @classmethod
    def of(cls, counting: Counting, *, keep_click_value: bool = False) -> Reading:
        return cls(f"{counting}_value_kept" if keep_click_value else str(counting))
