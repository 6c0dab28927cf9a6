"""Attack: pages, answers and replies that cost a parser quadratic time or memory, which stops the whole service.

A regular expression or a normalization in C holds the interpreter lock, so the event loop waits for it in any thread.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from answers.binding import bind
from answers.errors import InvalidSubmission, TooManyParts
from answers.provider_replies import answer_from_reply
from app.api.request_fields import StrictJsonRequest
from cache.backends.content import read_content
from cache.backends.documents import read_html_safely
from cache.backends.plain_html import html_to_text
from cache.capture import CaptureOutcome, Observation
from cache.errors import DocumentRejected
from cache.pages import utc_now
from mind2web2.utils.page_info_retrieval import html_to_markdown
from tests.security.parser_costs import MIB, SHAPES, measure

CHARS = MIB // 4
LIMIT_S = 10
"""CPU time limit of a child process. Each attack takes at most 1 s; before the fix, 15 s to an hour."""

ATTACKS = {
    "pages.classify": ["spaces then text", "no-break spaces"],
    "pages.soft_404": ["spaces then text"],
    "pages.html_to_text": ["newlines then text", "nested lists", "imports"],
    "pages.mhtml": ["mime heads", "mime parameters"],
    "answers.binding": ["list lines", "footnotes", "citation ranges"],
    "answers.reply text": ["brackets", "links"],
    "answers.reply marks": ["citation marks"],
    "answers.reply json": ["reply annotations"],
    "tasks.checks": ["ligatures"],
    "check.plan": ["table"],
    "replies.error body": ["json items"],
    "mind2web2.html_to_markdown": ["newlines", "nested lists", "table cells", "closed comments", "unclosed scripts"],
    "pages.logins": ["marks of other scripts"],
    "urls.canonical_key": ["percent"],
    "urls.wayback": ["deep percent escapes"],
    "grounding.find_quote": ["ligatures"],
    "grounding.covers_terms": ["capitalised words"],
    "mind2web2.page_keys": ["reordered marks"],
    "grounding.is_substantial": ["reordered marks"],
    "grounding.missing_terms": ["capitalised words", "words", "long number"],
    "grounding.drop_invented": ["many attributes"],
    "prompts.neutralise": ["marks of other scripts"],
    "replies.error": ["long word"],
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_hostile_text_exceeds_the_cpu_limit(name: str) -> None:
    costs = list(measure(name, CHARS, LIMIT_S, ATTACKS[name]))
    assert [cost for cost in costs if cost.seconds is None or cost.error] == []


@pytest.mark.parametrize("html", [SHAPES["distinct formatting"](MIB // 4), "<div>" * 200_000], ids=["memory", "time"])
async def test_html_that_needs_quadratic_time_or_memory_is_refused(html: str) -> None:
    with pytest.raises(DocumentRejected, match="too much time or memory"):
        await read_html_safely(html, "https://a.example/")


@pytest.mark.parametrize(("status", "outcome"), [(200, CaptureOutcome.TOO_LARGE), (404, CaptureOutcome.HTTP_ERROR)])
async def test_page_that_cannot_be_parsed_is_no_evidence(status: int, outcome: CaptureOutcome) -> None:
    received = Observation(
        url="https://a.example/", outcome=CaptureOutcome.TIMEOUT, captured_at=utc_now(), duration_s=0.0,
        backend="http", http_status=status,
    )  # fmt: skip
    page = SHAPES["distinct formatting"](MIB // 4)
    seen = await read_content(received, page.encode(), "text/html", deadline_s=60.0)
    assert (seen.outcome, seen.text, seen.is_evidence) == (outcome, "", False)


async def _parsed(body: bytes) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return await StrictJsonRequest({"type": "http", "method": "POST", "headers": []}, receive).json()


async def test_request_body_of_many_small_values_is_refused_before_decoding() -> None:
    """16 MiB of ``{}`` needed 400 MB per request."""
    for body in (
        b"[" + b"{}," * 600_000 + b"{}]",
        b"[" * 600_000,
        b'{"a":"' + b'\\"' * 300_000 + b'",' + b"1," * 600_000,
    ):
        with pytest.raises(json.JSONDecodeError, match="more than 500000 values"):
            await _parsed(body)


def test_nested_lists_and_quotations_do_not_multiply_the_output() -> None:
    for convert in (html_to_text, html_to_markdown):
        assert len(convert("<ul><li>a" * 5_000)) < 1_000_000
        assert len(convert("<blockquote>a" * 5_000)) < 1_000_000
        assert convert("<ul><li>a<ul><li>b</ul><li>c</ul>").split() == ["*", "a", "*", "b", "*", "c"]


@pytest.mark.parametrize(
    ("report", "parts"),
    [("- a\n" * 60_001, "lines"), ("Aa. " * 100_001, "sentences"), ("<http://a.example/> " * 30_001, "links")],
    ids=["lines", "sentences", "links"],
)
def test_report_with_too_many_parts_is_refused(report: str, parts: str) -> None:
    with pytest.raises(TooManyParts, match=f"000 {parts}"):
        bind(report)


def test_reply_with_too_many_citations_is_refused() -> None:
    marks = {"choices": [{"message": {"content": "a [1]. " * 30_001}}], "citations": ["http://a.example/"]}
    links = {"content": [{"type": "text", "text": "http://a.example/ " * 30_001}]}
    for reply in (marks, links):
        with pytest.raises(InvalidSubmission, match="more than 30000 links or citations"):
            answer_from_reply(reply)
