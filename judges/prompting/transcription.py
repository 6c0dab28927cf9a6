"""Pages that are all picture: the words that support a claim are copied out by a second call.

Code cannot find such a passage in the page. It checks what it can: that the passage says enough, holds the
claim's numbers and names, is not the claim itself handed back, and gives the judge no orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from judges.grounding.folding import fold
from judges.grounding.injection import scan
from judges.grounding.quotes import MAX_QUOTE_CHARS, MAX_QUOTES, is_telling
from judges.grounding.source_signals import REFUSED
from judges.grounding.support import Asked
from judges.grounding.term_overlap import bears_on
from judges.prompting.page_view import PreparedPage
from rubrics.verdict import Origin, Outcome, Quote, Verdict

ALMOST_NO_TEXT_CHARS: Final = 200
"""A page with less text than this may say the rest in pictures."""


class Transcription(BaseModel):
    """What the model copied out of the pictures."""

    passages: list[str] = Field(default_factory=list)


def is_all_picture(page: PreparedPage) -> bool:
    """Whether there is next to nothing to quote, and a picture to look at."""
    return bool(page.images) and len(page.text.strip()) < ALMOST_NO_TEXT_CHARS


def lacks_quote(verdict: Verdict) -> bool:
    """Whether a verdict supports its claim and has nothing to show for it."""
    return verdict.outcome is Outcome.PASSED and not verdict.quotes


def picture_quotes(passages: Sequence[str], asked: Asked) -> tuple[Quote, ...]:
    """Those of the first three passages that are grounds; none when together they do not bear on the claim."""
    page = asked.page
    if page is None or page.marks & REFUSED or asked.restates_task:
        return ()
    kept = [passage.strip() for passage in passages[:MAX_QUOTES] if _says_something(passage, asked.claim)]
    if not bears_on(asked.claim, kept):
        return ()
    return tuple(
        Quote(text=passage, page_id=page.page_id, start=0, end=0, origin=Origin.IMAGE)
        for passage in dict.fromkeys(kept)
    )


def _says_something(passage: str, claim: str) -> bool:
    if len(passage) > MAX_QUOTE_CHARS or not is_telling(passage):
        return False
    return not scan(passage).orders and _words(passage) != _words(claim)


def _words(text: str) -> str:
    return fold(text).text.strip(" .!?\"'")
