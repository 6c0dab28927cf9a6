"""The choices that a run of Mind2Web leaves open, in words. Imports nothing, so that a command line can name them."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """What makes a step right."""

    MINDACT = "mindact"
    """The published one: the element, and an operation F1 of 1."""
    ACTION = "action"
    """The integration guide's: the element, and the operation without its value."""


class NoPositive(StrEnum):
    """What becomes of steps that have no right element within the top k."""

    ZERO = "zero"
    """They are wrong, as in the paper."""
    SKIP = "skip"
    """They count nowhere."""


class Shuffle(StrEnum):
    """How the seed makes the order of play. Both are the same on every run, stopped ones included."""

    STEP = "step"
    """Each step by itself: a step's order does not depend on which others are run."""
    STREAM = "stream"
    """One generator over all steps in the order of the data, as a seeded run of the published script has it."""


class Unplayed(StrEnum):
    """Why nothing was asked about a step."""

    NO_POSITIVE = "no_positive"
    """The right element was lost when the page was cleaned."""
    OUTSIDE_TOP_K = "positive_outside_top_k"
    """The ranker put every right element behind the first k."""
    SINGLE = "single_candidate"
    """One candidate is all there is within the top k; nothing is asked, and so nothing is right."""


WITHOUT_POSITIVE = frozenset({Unplayed.NO_POSITIVE, Unplayed.OUTSIDE_TOP_K})
STEP_RULES = {Metric.MINDACT: "element+op_f1", Metric.ACTION: "element+action"}
