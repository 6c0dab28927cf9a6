"""Whether what verdicts rest on is there: votes that say so, and quotes that stand where they are said to stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from judges.analysis.replay.difference import Difference
from judges.analysis.replay.tree import RecordedNode, RecordedQuote
from rubrics.verdict import Origin, Outcome

_SHOWN_CHARS = 120


def groundless(root: RecordedNode, text_of: Callable[[str], str | None]) -> Iterator[Difference]:
    """The leaves whose votes or quotes do not bear their outcome out.

    ``text_of`` gives the text of a page by its id, None where it is not at hand: its quotes are then not looked up.
    """
    for leaf in root.leaves():
        yield from _voted(leaf)
        for quote in leaf.quotes:
            if quote.origin == Origin.TEXT:
                yield from _quoted(leaf, quote, text_of(quote.page_id))


def _voted(leaf: RecordedNode) -> Iterator[Difference]:
    """Pages of one claim vote apart, so that a leaf may hold more votes against it than for it; but not none for it."""
    needed = {Outcome.PASSED: True, Outcome.FAILED: False}.get(leaf.outcome)
    cast = [vote.result for vote in leaf.votes if vote.result is not None]
    if needed is not None and cast and needed not in cast:
        yield Difference(where=f"votes of leaf {leaf.id}", recorded=leaf.outcome.value, recomputed=cast)


def _quoted(leaf: RecordedNode, quote: RecordedQuote, text: str | None) -> Iterator[Difference]:
    if text is None:
        return
    found = text[quote.start : quote.end] if 0 <= quote.start <= quote.end else ""
    if found != quote.text:
        yield Difference(
            where=f"quote of leaf {leaf.id} in page {quote.page_id}",
            recorded=quote.text[:_SHOWN_CHARS],
            recomputed=found[:_SHOWN_CHARS],
        )
