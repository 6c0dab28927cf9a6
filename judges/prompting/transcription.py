"""Quotes from pages whose content is in images: a second model request transcribes the supporting passages.

Code cannot find such a passage in the page text. It checks that the passage is substantial, contains the claim's
numbers and names, is not the claim itself, and contains no injected instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from cache.capture import PageKind
from judges.grounding.folding import fold
from judges.grounding.injection import scan
from judges.grounding.quotes import MAX_QUOTE_CHARS, MAX_QUOTES, is_substantial
from judges.grounding.source_signals import DISQUALIFYING_SIGNALS
from judges.grounding.support import ClaimGrounds
from judges.grounding.term_overlap import covers_terms
from judges.prompting.page_view import PreparedPage
from rubrics.verdict import Outcome, Quote, QuoteOrigin, Verdict

ALMOST_NO_TEXT_CHARS: Final = 200
"""Pages with less text than this are treated as images."""
MIN_WEB_TEXT_CHARS: Final = 40
"""The same for web pages whose pictures were not shown: they show the text, so a short one is usually all there is."""

TOO_LONG: Final = "its text is too long for the judge"


class Transcription(BaseModel):
    """Passages that the model transcribed from the screenshots."""

    passages: list[str] = Field(default_factory=list)


def is_all_picture(page: PreparedPage) -> bool:
    """Return whether the page has screenshots and almost no readable text."""
    return bool(page.images) and not _has_text(page)


def _has_text(page: PreparedPage) -> bool:
    return not page.garbled and len(page.text.strip()) >= ALMOST_NO_TEXT_CHARS


def unseen_part(page: PreparedPage, *, text_only: bool, shortened: bool) -> str:
    """Return why a judge did not see all of a page; an empty string if it did.

    Pictures count only if the page has almost no text. The text of any other page is what its claims rely on. Garbled
    text is unseen even if all pictures are shown, because the page may have more text than they can show legibly.

    Args:
        text_only: The judge sees no pictures.
        shortened: The request was sent with a part of the prepared page.
    """
    if page.incomplete:
        return f"its capture is incomplete ({page.incomplete})"
    if page.is_cut or shortened:
        return TOO_LONG
    if page.garbled:
        return f"its text is garbled ({page.garbled}; upload a readable copy, or use a model that accepts images)"
    has_text = len(page.text.strip()) >= (MIN_WEB_TEXT_CHARS if page.kind is PageKind.WEB else ALMOST_NO_TEXT_CHARS)
    is_unseen = page.has_unseen_pictures or (text_only and bool(page.images))
    return "it has almost no text, and not all of its pictures were shown" if is_unseen and not has_text else ""


def unseen_reasoning(unseen: str, reasoning: str) -> str:
    """Return the reasoning of a claim that is not judged. ``reasoning`` is that about the seen part of the page."""
    return f"Not all of the page was seen: {unseen}. About the part that was seen: {reasoning}"


def lacks_quote(verdict: Verdict) -> bool:
    """Return whether the verdict supports its claim without a quote."""
    return verdict.outcome is Outcome.PASSED and not verdict.quotes


def picture_quotes(passages: Sequence[str], grounds: ClaimGrounds) -> tuple[Quote, ...]:
    """Return those of the first three passages that count as grounds; none if they do not cover the claim's terms."""
    page = grounds.page
    if page is None or page.source_signals & DISQUALIFYING_SIGNALS or grounds.restates_task:
        return ()
    accepted = [passage.strip() for passage in passages[:MAX_QUOTES] if _is_acceptable(passage, grounds.claim)]
    if not covers_terms(grounds.claim, accepted):
        return ()
    return tuple(
        Quote(text=passage, page_id=page.page_id, start=0, end=0, origin=QuoteOrigin.IMAGE)
        for passage in dict.fromkeys(accepted)
    )


def _is_acceptable(passage: str, claim: str) -> bool:
    if len(passage) > MAX_QUOTE_CHARS or not is_substantial(passage):
        return False
    return not scan(passage).orders and _words(passage) != _words(claim)


def _words(text: str) -> str:
    return fold(text).text.strip(" .!?\"'")
