"""Attack: pages, answers and replies that cost a parser quadratic time or memory, which stops the whole service.

A regular expression or a normalization in C holds the interpreter lock, so the event loop waits for it in any thread.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.binding import bind
from answers.errors import InvalidSubmission, TooManyParts
from answers.provider_replies import answer_from_reply
from app.api.request_fields import StrictJsonRequest
from app.features.check.report import StatementKind
from app.features.check.splitting import MAX_QUOTED_CHARS, SplitClaim, check_division
from app.features.check.statements import LABEL_LINE, ReportStatement, Section
from cache.backends.content import read_content
from cache.backends.documents import read_html_safely
from cache.backends.plain_html import TextConverter, html_to_text, read_html
from cache.capture import CaptureOutcome, Observation
from cache.errors import DocumentRejected
from cache.pages import utc_now
from cache.unicode_forms import nfc
from cache.urls import canonical_key, same_page
from judges.grounding.folding import fold
from judges.grounding.quotes import find_quote
from judges.grounding.term_overlap import missing_terms, sentence_starts
from judges.llm.error_mapping import read_error_body
from mind2web2.utils.page_info_retrieval import html_to_markdown
from tests.security.parser_costs import MIB, PARSERS, SHAPES, measure

CHARS = MIB // 4
LIMIT_S = 10
"""CPU time limit of a child process. Each attack takes at most 1 s; before the fix, 15 s to an hour."""

ATTACKS = {
    "pages.classify": ["spaces then text", "newlines then text", "no-break spaces"],
    "pages.classify title": ["spaces then text", "newlines then text"],
    "pages.soft_404": ["spaces then text", "no-break spaces"],
    "pages.html_to_text": ["newlines then text", "indented lines", "nested lists", "nested quotes", "imports"],
    "pages.mhtml": ["mime heads", "mime parameters"],
    "pages.html of child": [
        "nested divisions",
        "many attributes",
        "table rows",
        "nested paragraphs",
        "short headings",
        "short lines",
        "numbered lines",
    ],
    "answers.binding": ["list lines", "spaced dots", "headings", "footnotes", "autolinks", "citation ranges"],
    "answers.reply text": ["brackets", "links", "www hosts"],
    "answers.reply marks": ["citation marks"],
    "answers.reply json": ["reply annotations"],
    "tasks.checks": ["words", "backticks", "combining marks", "ligatures"],
    "check.plan": ["clauses", "citation marks", "table", "hashes"],
    "check.division of model": ["words", "spaced dots"],
    "replies.error body": ["json items"],
    "mind2web2.html_to_markdown": [
        "newlines",
        "nested lists",
        "table cells",
        "long character reference",
        "autolinks",
        "closed comments",
        "closed sections",
        "unknown sections",
        "end tag starts",
        "less-than",
        "html comments",
        "nested paragraphs",
        "short entities",
        "unclosed scripts",
    ],
    "pages.classify urls": ["combining marks"],
    "pages.logins": ["marks of other scripts"],
    "pages.soft_404 addresses": ["percent", "combining marks"],
    "urls.canonical_key": ["emoji", "percent"],
    "urls.wayback": ["deep percent escapes"],
    "grounding.find_quote": ["ligatures"],
    "grounding.terms": ["ligatures"],
    "grounding.covers_terms": ["capitalised words", "actions", "ligatures"],
    "urls.canonical_key of host": ["reordered marks", "ligatures"],
    "mind2web2.is_valid_url": ["reordered marks"],
    "mind2web2.page_keys": ["reordered marks"],
    "mind2web2.normalize_url_simple": ["reordered marks"],
    "grounding.is_substantial": ["reordered marks", "marks of other scripts"],
    "grounding.restates": ["words"],
    "grounding.missing_terms": [
        "capitalised words",
        "words",
        "sentences",
        "cdata",
        "element marks",
        "long number",
        "mime headers",
    ],
    "grounding.drop_invented": ["many attributes"],
    "prompts.neutralise": ["marks of other scripts", "vowels of other scripts"],
    "replies.error": ["long word", "dots", "urls"],
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


async def test_child_process_reads_html_as_this_process_does() -> None:
    html = "<title>T</title><h1>A  b</h1><ul><li>1. x</ul><form><input type=password></form>" + (
        "<p>\u00e9 \U0001f600 <a href='/c'>link  text</a>\n\n - d</p>" * 200
    )
    assert await read_html_safely(html, "https://a.example/") == read_html(html, "https://a.example/")


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


async def test_request_body_with_a_long_text_full_of_commas_is_accepted() -> None:
    text = ',{[:\\"' * 150_000
    assert await _parsed(json.dumps({"text": text}).encode()) == {"text": text}


def test_nested_lists_and_quotations_do_not_multiply_the_output() -> None:
    for convert in (html_to_text, html_to_markdown):
        assert len(convert("<ul><li>a" * 5_000)) < 1_000_000
        assert len(convert("<blockquote>a" * 5_000)) < 1_000_000
        assert convert("<ul><li>a<ul><li>b</ul><li>c</ul>").split() == ["*", "a", "*", "b", "*", "c"]


def test_runs_of_white_space_are_converted_as_one() -> None:
    assert html_to_text("<p>a \n\n 1. b</p><pre>c\n\n  d</pre>") == "a 1\\. b\n    \n    \n    c\n    \n      d"


def test_text_of_html_that_is_never_closed_is_kept() -> None:
    assert html_to_markdown("<p>a</p>1 < 2 <!-- b <c") == "a\n\n1 < 2 <!-- b <c"
    assert html_to_markdown("a<![if !IE]>b<![endif]>c<![x[d]>e<!-- f -->g") == "abceg"


def test_ligatures_of_a_page_are_found_in_letters() -> None:
    page = "\ufdfa\n" * 10_000 + "one two three \ufdfa"
    assert find_quote(
        fold(page), "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645"
    )
    assert len(fold("\ufdfa" * 100_000).text) == 5_000 * 18 + 95_000


def test_urls_that_are_too_long_are_only_stripped() -> None:
    long = "http://www.a.example/?" + "%7e" * 30_000
    assert canonical_key(f" {long} ") == long
    assert same_page("http://a.example/" + "\u4e16" * 4_000, "https://www.a.example/" + "%E4%B8%96" * 4_000)


def test_numbers_of_any_length_are_no_fault() -> None:
    assert missing_terms(f"It has {'9' * 5_000} parts.", frozenset()) == ("9" * 5_000,)
    assert html_to_markdown(f"&#{'9' * 5_000};") == "\ufffd"


def test_texts_of_living_scripts_are_normalized_completely() -> None:
    text = "Tie\u0302\u0301ng Vie\u0323\u0302t \u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u05d9\u05ea"
    assert nfc(text * 1_000).startswith("Ti\u1ebfng Vi\u1ec7t")
    assert len(nfc(text * 1_000)) == 1_000 * len(nfc(text))


def test_page_with_very_much_markup_keeps_its_text_without_markdown() -> None:
    usual = "<h1>Head</h1>" + "<ul><li>1. <b>a&amp;b</b></ul>" * 1_000
    assert "  * 1\\. a&b" in read_html(usual, "https://a.example/").text
    dense = read_html("<h1>Head</h1>" + "<ul><li>1. <b>a&amp;b</b></ul>" * 30_000, "https://a.example/")
    assert dense.text.splitlines() == ["Head", *["1.", "a&b"] * 30_000]


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


def test_statements_are_whole_if_a_reply_quotes_more_than_its_section() -> None:
    statements = tuple(
        ReportStatement(start=start, end=start + 4, kind=StatementKind.SENTENCE, marks=(), plain="a b.")
        for start in (0, 5)
    )
    section = Section(context="", statements=statements)
    claims = {1: [SplitClaim(claim="b", quotes=["b"])], 2: [SplitClaim(claim="b", quotes=["b"] * MAX_QUOTED_CHARS)]}
    first, second = check_division(section, "a b. a b.", claims)
    assert [(claim.text, claim.spans[0].start) for claim in (*first.claims, *second.claims)] == [("b", 2), ("a b.", 5)]


def test_markdown_of_very_much_markup_is_its_lines() -> None:
    dense = "<style>s</style><script>t</script><!-- c -->" + "<p>1 &lt; <b>2" * 100_000 + "<u"
    assert html_to_markdown(dense).splitlines() == [*["1 <", "2"] * 99_999, "1 <", "2<u"]


class _WithEntities(TextConverter):
    """Converter that escapes a "<" that opens no tag as an entity."""

    def feed(self, data: str) -> None:
        for opening, closing in (("<!--", "-->"), ("<", ">")):
            head, end, tail = data.rpartition(closing)
            data = head + end + tail.replace(opening, f"&lt;{opening[1:]}")
        super().feed(data)


@given(st.lists(st.sampled_from(["<", "<", "<p>", "</p>", "<i>", "</i>", "<!--", "-->", "a", " ", "\n", "- ", "1. "])))
def test_tags_that_are_never_closed_are_converted_as_entities_are(parts: list[str]) -> None:
    """Spaces at the end of a line may differ: the library drops a text that consists of spaces."""
    html = "".join(parts)
    shown, expected = (of.handle(html).splitlines() for of in (TextConverter(), _WithEntities()))
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in expected]


@given(st.text(alphabet="#*_ ab:.\n", max_size=12))
def test_titles_of_lists_are_found_as_by_the_simple_pattern(line: str) -> None:
    simple = re.compile(r"[\s*_#]*[^\s:.]{1,30}(?: [^\s:.]{1,30}){0,3}[*_]*:[*_]*")
    assert bool(LABEL_LINE.fullmatch(line)) is bool(simple.fullmatch(line))


@given(st.text(alphabet='Ab. \n"(!', max_size=12))
def test_sentences_start_where_a_search_back_from_each_word_finds_them(text: str) -> None:
    for start in (match.start() for match in re.finditer(r"\b\w", text)):
        before = text[:start].rstrip()
        starts = start == 0 or before.endswith(('"', "(")) or (before != text[:start] and before.endswith((".", "!")))
        assert bool(sentence_starts(text)[start]) is starts


def test_long_error_body_is_read_as_text() -> None:
    assert read_error_body('{"error":{"message":"a"}}').message == "a"
    assert read_error_body("<p>b</p>" + SHAPES["json items"](MIB)).message.startswith("b [{},{}")


def test_every_attack_names_a_parser_and_a_shape() -> None:
    assert ATTACKS.keys() <= PARSERS.keys()
    assert {shape for shapes in ATTACKS.values() for shape in shapes} <= SHAPES.keys()
