"""Faults of a script's tools, recorded for the answer that is being judged. The script may ignore their errors.

A request that finds nothing, or that the service rejects because of its arguments, is not a fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from cache.capture import Observation
from cache.errors import CacheError, NoEvidence
from judges.late_libraries import arxiv, maps_exceptions
from judges.source_policy import verdict_without_evidence
from mind2web2.llm_client.judge import AnswerScope, HarnessError, current_scope
from rubrics.verdict import Outcome, Reason

__all__ = [
    "ToolNotConfigured",
    "lose_harness",
    "lose_page",
    "lose_tool",
    "no_evidence",
    "recorded_arxiv_fault",
    "recorded_cancellation",
    "recorded_maps_fault",
]

_MAPS_REJECTIONS: Final = frozenset(
    {
        "INVALID_REQUEST",
        "NOT_FOUND",
        "ZERO_RESULTS",
        "MAX_DIMENSIONS_EXCEEDED",
        "MAX_ELEMENTS_EXCEEDED",
        "MAX_ROUTE_LENGTH_EXCEEDED",
        "MAX_WAYPOINTS_EXCEEDED",
    }
)
"""Statuses of the Maps API that are due to the arguments of a request."""


class ToolNotConfigured(ValueError):
    """A key that a tool needs is not set."""


def lose_tool(explanation: str) -> None:
    """Record that a tool of the script failed."""
    _lose(f"a tool of the script failed: {explanation}", Reason.EXTRACTION_FAILED)


def lose_harness(error: HarnessError) -> None:
    """Record an error of the harness, after which the answer has no result."""
    current_scope().record(error)


def lose_page(error: CacheError, scope: AnswerScope | None = None) -> None:
    """Record that the script cannot read a page, unless the page is known not to exist."""
    verdict = verdict_without_evidence(error)
    if verdict.outcome is Outcome.NOT_JUDGED and verdict.reason is not None:
        _lose(f"the script got no page: {error}", verdict.reason, scope)


def no_evidence(seen: Observation) -> NoEvidence:
    """Return the error for a capture that is not evidence."""
    return NoEvidence(seen.url, seen.outcome, seen.detail, gone=seen.gone, capture=None)


@contextmanager
def recorded_cancellation(tool: str) -> Iterator[None]:
    """Record that the script has cancelled a request of a tool, for example after a timeout."""
    try:
        yield
    except asyncio.CancelledError:
        current_scope().decisions.record_cancelled(f"a request of {tool}")
        raise


@contextmanager
def recorded_maps_fault() -> Iterator[None]:
    """Record a fault of the Maps API and raise its error. The message of an error can contain the key."""
    try:
        with recorded_cancellation("Google Maps"):
            yield
    except _maps_errors() as error:
        status = getattr(error, "status", None)
        if status not in _MAPS_REJECTIONS:
            lose_tool(f"Google Maps: {status or type(error).__name__}")
        raise


@contextmanager
def recorded_arxiv_fault() -> Iterator[None]:
    """Record a fault of arXiv and raise its error."""
    try:
        with recorded_cancellation("arXiv"):
            yield
    except _arxiv_errors() as error:
        if getattr(error, "status", None) != HTTPStatus.BAD_REQUEST:
            lose_tool(f"arXiv: {error}")
        raise


def _maps_errors() -> tuple[type[Exception], ...]:
    return maps_exceptions.ApiError, maps_exceptions.TransportError, maps_exceptions.Timeout


def _arxiv_errors() -> tuple[type[Exception], ...]:
    return arxiv.ArxivError, OSError


def _lose(explanation: str, reason: Reason, scope: AnswerScope | None = None) -> None:
    (scope or current_scope()).lose(explanation, reason)
