"""Consistency of verdicts with their votes and quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from judges.analysis.replay.difference import ReplayDifference
from judges.analysis.replay.tree import RecordedNode, RecordedQuote
from rubrics.verdict import Outcome, QuoteOrigin

_SHOWN_CHARS = 120


def inconsistent_leaves(root: RecordedNode, text_of: Callable[[str], str | None]) -> Iterator[ReplayDifference]:
    """Yield the leaves whose votes or quotes contradict their outcome.

    ``text_of`` returns the text of a page by its id, or None if it is unavailable; its quotes are then not checked.
    """
    for leaf in root.leaves():
        yield from _check_votes(leaf)
        for quote in leaf.quotes:
            if quote.origin == QuoteOrigin.TEXT:
                yield from _check_quote(leaf, quote, text_of(quote.page_id))


def _check_votes(leaf: RecordedNode) -> Iterator[ReplayDifference]:
    """Check the votes. Each page of a claim has its own votes, so one matching vote suffices."""
    needed = {Outcome.PASSED: True, Outcome.FAILED: False}.get(leaf.outcome)
    cast = [vote.result for vote in leaf.votes if vote.result is not None]
    if needed is not None and cast and needed not in cast:
        yield ReplayDifference(where=f"votes of leaf {leaf.id}", recorded=leaf.outcome.value, recomputed=cast)


def _check_quote(leaf: RecordedNode, quote: RecordedQuote, text: str | None) -> Iterator[ReplayDifference]:
    if text is None:
        return
    found = text[quote.start : quote.end] if 0 <= quote.start <= quote.end else ""
    if found != quote.text:
        yield ReplayDifference(
            where=f"quote of leaf {leaf.id} in page {quote.page_id}",
            recorded=quote.text[:_SHOWN_CHARS],
            recomputed=found[:_SHOWN_CHARS],
        )
