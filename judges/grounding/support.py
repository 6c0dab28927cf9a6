"""Grounds of a supported verdict: whether its quotes prove it, or only the judge's word does.

The quotes were already found in the page (``judges.grounding.quotes``). They do not count as grounds if the source
cannot support any claim, or if a quote is itself an injected instruction, an echo of the URL or part of a flood. If
any text that the judge read contains injected instructions, the quotes must also cover the claim's terms. No model is
involved and no outcome changes: the result only decides whether the verdict counts as grounded.

On pages whose content is in images, a second model request transcribes the supporting passages. Code cannot find such a
passage in the page text. It checks that the passage is substantial, contains the claim's numbers and names, is not the
claim itself, and contains no injected instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, Field

from cache.capture import PageKind
from judges.grounding.folding import fold
from judges.grounding.injection import Scan, is_flood, scan
from judges.grounding.quotes import MAX_QUOTE_CHARS, MAX_QUOTES, is_long, is_substantial
from judges.grounding.source_signals import DISQUALIFYING_SIGNALS, SUSPICIOUS_SIGNALS
from judges.grounding.term_overlap import covers_terms, missing_terms, terms
from judges.prompting.page_view import PreparedPage
from rubrics.verdict import Outcome, Quote, QuoteOrigin, Verdict

TASK_RUN_WORDS: Final = 6
TASK_SHARE: Final = 0.5
"""Fraction of a task's six-word sequences; a page that contains this many was written for the task."""
MIN_TASK_WORDS: Final = 15
MAX_TASK_RUNS: Final = 200
"""Number of sequences that are compared; of a longer task, they are spread evenly over it."""

_DENIAL = re.compile(
    r"[\"')\]]*(?:\?|,? (?:is|are|was|were|has been|have been|turned out|proved)(?: \w+)? "
    r"(?:(?:to be )?(?:false|untrue|wrong|incorrect|mistaken|a myth|a hoax|a legend|fiction|invented|fabricated|"
    r"refuted|disproved|disproven|debunked|denied|retracted|rejected)|not (?:true|correct|so|the case)))"
)

scan_once = lru_cache(maxsize=64)(scan)
"""Cached ``scan``, because answers and claims occur in many questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimGrounds:
    """Question with the checks of its texts.

    ``page`` is None for a claim on the answer alone. ``search_page`` is False if the page is not searched; then
    no quote is usable.
    """

    claim: str
    answer_scan: Scan
    claim_scan: Scan
    page: PreparedPage | None
    search_page: bool = True
    lacking: tuple[str, ...] = ()
    restates_task: bool = False

    @classmethod
    def of(
        cls, claim: str, *, task: str, answer: str, page: PreparedPage | None, search_page: bool = True
    ) -> ClaimGrounds:
        """Check the texts. Takes time for long texts; call it in a thread."""
        return cls(
            claim=claim,
            answer_scan=scan_once(answer),
            claim_scan=scan_once(claim),
            page=page,
            search_page=search_page,
            lacking=() if page is None or not search_page else missing_terms(claim, page.index.stems),
            restates_task=page is not None and search_page and restates(page.index.folded.text, task),
        )

    def signals(self) -> tuple[str, ...]:
        """Return signals for the reader of the verdict, sorted."""
        return tuple(sorted(self._signals()))

    def grounded(self, quotes: Sequence[Quote]) -> bool | None:
        """Return whether a supported verdict with these grounds counts in the strict score.

        None means that it needs no grounds: a verdict on the answer alone needs no quotes. Such a verdict does not
        count if the answer or the claim contains injected instructions, or if the answer only announces an answer.
        """
        if self.page is not None:
            return bool(quotes)
        is_suspect = (
            self.answer_scan.has_unquoted_injection
            or self.claim_scan.has_unquoted_injection
            or self.answer_scan.is_empty_announcement
        )
        return False if is_suspect else None

    def usable_quotes(self, quotes: Sequence[Quote]) -> tuple[Quote, ...]:
        """Return the found quotes that support the claim; none if together they are not enough."""
        page = self.page
        if (
            page is None
            or not self.search_page
            or page.source_signals & DISQUALIFYING_SIGNALS
            or self.restates_task
            or self.lacking
        ):
            return ()
        usable = [(quote, rest) for quote in quotes if (rest := self._factual_part(quote, page)) is not None]
        if self._is_doubtful(page) and not covers_terms(self.claim, [rest for _, rest in usable]):
            return ()
        return tuple(quote for quote, _ in usable)

    def _signals(self) -> Iterator[str]:
        for name, text_scan in (("answer", self.answer_scan), ("claim", self.claim_scan)):
            if text_scan.orders:
                yield f"orders_in_{name}"
        if self.answer_scan.is_empty_announcement:
            yield "answer_says_nothing"
        if self.page is None:
            return
        if self.search_page and self.page.index.scan.orders:
            yield "orders_in_page"
        if self.search_page and self.page.index.scan.is_flood:
            yield "page_is_flooded"
        if self.page.url_scan.orders:
            yield "orders_in_url"
        if self.lacking:
            yield "claim_names_what_page_lacks"
        if self.restates_task:
            yield "page_restates_task"
        yield from (signal.value for signal in self.page.source_signals)

    def _is_doubtful(self, page: PreparedPage) -> bool:
        scans = (self.answer_scan, self.claim_scan, page.index.scan, page.url_scan)
        return any(one.is_suspect for one in scans) or bool(page.source_signals & SUSPICIOUS_SIGNALS)

    def _factual_part(self, quote: Quote, page: PreparedPage) -> str | None:
        """Return the part of a quote that states facts, or None if it is insufficient."""
        if _is_denied(page, quote):
            return None
        pieces = re.split(r"(?<=[.!?])\s+|\n+", " ".join(_without_orders(quote, page)))
        rest = " ".join(piece for piece in pieces if not (_is_flood(page, piece) or _is_unrendered(page, piece)))
        for echo in page.url_texts:
            remaining = " ".join(fold(rest).text.split(echo))
            if len(remaining) < len(fold(rest).text) and not _adds(remaining, self.claim, page.url_texts):
                return None
        if not is_substantial(rest):
            return None
        if not is_long(rest) and not terms(rest).all & terms(self.claim).all:
            return None
        return rest


def restates(page: str, task: str) -> bool:
    """Return whether a folded page repeats the task verbatim. Genuine pages do not."""
    words = fold(task).text.split()
    if len(words) < MIN_TASK_WORDS:
        return False
    places = range(len(words) - TASK_RUN_WORDS + 1)
    compared = places[:: len(places) // MAX_TASK_RUNS + 1]
    runs = {" ".join(words[place : place + TASK_RUN_WORDS]) for place in compared}
    return sum(run in page for run in runs) >= TASK_SHARE * len(runs)


def _without_orders(quote: Quote, page: PreparedPage) -> Iterator[str]:
    """Return the pieces of a quote outside of injected instructions."""
    place = quote.start
    for order in page.index.scan.orders:
        if order.end <= place or order.start >= quote.end:
            continue
        if order.start > place:
            yield page.text[place : order.start]
        place = order.end
    if place < quote.end:
        yield page.text[place : quote.end]


def _is_flood(page: PreparedPage, piece: str) -> bool:
    folded = fold(piece).text.strip()
    return bool(folded) and is_flood(page.index.folded.text.count(folded), len(folded), len(page.index.folded.text))


def _is_unrendered(page: PreparedPage, piece: str) -> bool:
    """Return whether every occurrence of a piece is in PDF text that is not rendered."""
    folded = fold(piece).text.strip()
    return (
        bool(folded)
        and folded in page.index.unrendered
        and page.index.folded.text.count(folded) <= page.index.unrendered.count(folded)
    )


def _is_denied(page: PreparedPage, quote: Quote) -> bool:
    """Return whether the page continues after the quote with a question mark or a denial."""
    after = fold(page.text[quote.end : quote.end + 80]).text
    return quote.text[-1:] not in ".!?" and _DENIAL.match(after) is not None


def _adds(rest: str, claim: str, echoed: Iterable[str]) -> bool:
    """Return whether a text contains terms of the claim that the URL does not contain."""
    echoed_terms = {word for echo in echoed for word in terms(echo).all}
    fresh = {word.lower() for word in terms(claim).all} - echoed_terms
    return bool(fresh & terms(rest).all)


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
