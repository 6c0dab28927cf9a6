"""What can be wrong with Mind2Web's data and files, beyond ``judges.suites.errors``.

SuiteError
├── PageUnusable          a page is no XML, or lacks an element that it should have
├── RankMissing           no rank is known for a step, or for one of its candidates
├── ScoresRefused         a pickle of candidate scores holds anything but scores, or too much
├── TemplateUnusable      a prompt template is no list of chat messages
├── PredictionsUnusable   a predictions file is not in the published format
└── NothingPlayed         the published figures are asked for where they do not exist
"""

from __future__ import annotations

from judges.suites.errors import SuiteError


class PageUnusable(SuiteError):
    """The page of a step cannot be shown. ``element`` is the id that it lacks, None where it is no XML at all."""

    def __init__(self, message: str, *, element: str | None = None) -> None:
        super().__init__(message)
        self.element = element


class RankMissing(SuiteError):
    """The scores say nothing about a step or a candidate. ``candidate`` is None where the whole step is unknown."""

    def __init__(self, message: str, *, candidate: str | None = None) -> None:
        super().__init__(message)
        self.candidate = candidate


class ScoresRefused(SuiteError):
    """The scores file is not read. The message says what is in it that should not be."""


class TemplateUnusable(SuiteError):
    """The prompt template cannot be filled in."""


class PredictionsUnusable(SuiteError):
    """The predictions cannot be scored. The message names the file and the entry."""


class NothingPlayed(SuiteError):
    """With its quirks, the published evaluation comes to no end unless some step has a positive candidate."""
