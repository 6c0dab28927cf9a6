"""CPU time of parsers of untrusted text for hostile inputs. Each parser runs in its own child process."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TextIO

from pydantic import BaseModel
from pydantic_core import from_json

from answers.binding import bind
from answers.errors import InvalidSubmission, TooManyParts
from answers.provider_replies import answer_from_reply
from app.features.check.reports import ReportInput, ReportRejected, plan_check
from app.features.check.statements import split_by_rules
from cache.backends.plain_html import html_to_text, is_dense
from cache.classify import soft_404, walls
from cache.classify.quality import PageFacts, classify
from cache.errors import DocumentRejected
from cache.sources.uploads import is_mhtml, read_mhtml
from cache.sources.wayback import _archivable_url
from cache.urls import canonical_key
from judges.extractor import KnownUrls, drop_invented
from judges.grounding.folding import fold
from judges.grounding.quotes import find_quote, is_substantial
from judges.grounding.term_overlap import covers_terms, missing_terms, stems_of
from judges.llm.error_mapping import ErrorResponse, error_for_response, parse_error_body, read_error
from judges.llm.replies import MAX_REPLY_CHARS
from judges.prompting.blocks import neutralise
from judges.yaml_tasks.compiler import MAX_LEAVES
from judges.yaml_tasks.expressions import Scalar, Variable, parse_condition
from mind2web2.page_keys import address_of, lenient_key, storage_key
from mind2web2.utils.page_info_retrieval import html_to_markdown

MIB: Final = 1 << 20
Parser = Callable[[str], object]


def repeat(part: str, *, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return a function of a length that repeats ``part`` to that length."""
    return lambda chars: before + part * max(1, (chars - len(before) - len(after)) // len(part)) + after


def nested(opening: str, closing: str, core: str = "") -> Callable[[int], str]:
    """Return a function of a length that nests ``opening`` and ``closing`` to that length."""

    def build(chars: int) -> str:
        depth = max(1, chars // (len(opening) + len(closing)))
        return opening * depth + core + closing * depth

    return build


def numbered(part: str, *, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return a function of a length that repeats ``part`` with a running number for each ``%d``."""

    def build(chars: int) -> str:
        parts, size, number = [before], len(before) + len(after), 0
        while size < chars:
            text = part.replace("%d", str(number))
            parts.append(text)
            size, number = size + len(text), number + 1
        return "".join([*parts, after])

    return build


_MIME: Final = "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x"
SHAPES: Final[Mapping[str, Callable[[int], str]]] = {
    "brackets": repeat("["),
    "spaces then text": repeat(" ", before="a", after="b"),
    "newlines": repeat("\n"),
    "newlines then text": repeat("\n", before="a", after="b"),
    "no-break spaces": repeat("\u00a0", before="a", after="b"),
    "long word": repeat("a"),
    "capitalised words": repeat("Aa "),
    "words": numbered("word%d "),
    "long number": repeat("1"),
    "percent": repeat("%"),
    "deep percent escapes": repeat("25", before="%"),
    "reordered marks": repeat("\u0301\u0327", before="a"),
    "ligatures": repeat("\ufdfa"),
    "marks of other scripts": repeat("\u0591\u05b0", before="a"),
    "table": repeat("|a|b|\n", before="|a|b|\n|-|-|\n"),
    "list lines": repeat("- a\n"),
    "footnotes": numbered("[^a%d]: b\n"),
    "citation marks": repeat("Aa bb [1]. "),
    "citation ranges": repeat("[1-50] "),
    "reply annotations": repeat(
        '{"type":"url_citation","url":"http://a.b","start_index":0,"end_index":1},',
        before='{"output":[{"type":"message","content":[{"type":"output_text","text":"a b","annotations":[',
        after='{"type":"file"}]}]}]}',
    ),
    "links": repeat("](http://a.b)", before="[" * 1000),
    "closed comments": repeat("<!--a>"),
    "many attributes": numbered("a%d ", before="<p "),
    "unclosed scripts": repeat("<script>"),
    "nested lists": repeat("<ul><li>a"),
    "distinct formatting": numbered("<p><b x=%d>"),
    "imports": repeat("@import;", before="<style>", after="</style>"),
    "table cells": lambda chars: "<td>" * (chars // 8) + "<table></tr>" * (chars // 24),
    "json items": repeat("{},", before="[", after="{}]"),
    "mime heads": repeat(
        "\n--x\nContent-Type: multipart/related" + ";a" * 30_000 + "\n\n", before=_MIME + "\n"
    ),
    "mime parameters": repeat(
        ";a", before=_MIME, after="\n\n--x\n\na"
    ),
}  # fmt: skip
"""Hostile inputs: name, and function from the number of characters to the text."""


class _Link(BaseModel):
    name: str
    url: str


class _Links(BaseModel):
    links: list[_Link]


_URL = "https://a.example/"


def _read(text: str) -> ErrorResponse:
    return read_error(parse_error_body(text), provider="openai", status=400, default_message="")


def _error(text: str) -> ErrorResponse:
    return ErrorResponse(provider="a", status=400, message=text, code=text, param=text)


def _links_reply(text: str) -> object:
    """Check values of a model's reply against a page, both taken from the text: as many as a reply may contain."""
    links: list[_Link] = []
    chars = 0
    for part in text.split() or [text]:
        chars += 2 * len(part) + len('{"name":"","url":""},')
        if chars > MAX_REPLY_CHARS:
            break
        links.append(_Link(name=part, url=part))
    return drop_invented(_Links(links=links), KnownUrls(text[:100]))


def _strict_json(text: str) -> Any:
    return from_json(text.encode("utf-8", "replace"), allow_inf_nan=False, cache_strings="none")


def _facts(text: str, **changes: Any) -> object:
    facts: dict[str, Any] = {"url": _URL, "final_url": _URL, "status": 200, "text": text, "html": text}
    facts.update(changes)
    return classify(PageFacts(**facts))


def _as_bytes(work: Callable[[bytes], object]) -> Parser:
    return lambda text: work(text.encode("utf-8", "replace"))


def _in_url(work: Parser) -> Parser:
    """Return a parser of a URL, for a text in its path, query and fragment."""

    def parse(text: str) -> object:
        third = len(text) // 3
        return work(f"{_URL}{text[:third]}?{text[third : 2 * third]}#{text[2 * third :]}")

    return parse


def _cpu_s() -> float:
    """Return the CPU time of this process and its children that ended."""
    return sum(os.times()[:4])


def _reply(text: str, **fields: Any) -> object:
    """Convert replies with this text, and with citations of an OpenAI or a Perplexity reply."""
    cited = {"type": "url_citation", "url": "http://a.b/c", "start_index": 0, "end_index": len(text) // 2} | fields
    content = {"type": "output_text", "text": text, "annotations": [cited]}
    return answer_from_reply({"output": [{"type": "message", "content": [content]}]})


def _numbered_reply(text: str) -> object:
    return answer_from_reply({"choices": [{"message": {"content": text}}], "citations": ["http://a.b/c"]})


def _plan(text: str) -> object:
    return [split_by_rules(section, text) for section in plan_check(ReportInput(name="a", text=text)).sections]


def _checks(text: str) -> None:
    """Evaluate as many different checks of an answer as a task file may contain."""
    for number in range(MAX_LEAVES // 2):
        for check in (f"words(answer) > {number}", f"contains(answer, 'x{number}')"):
            parse_condition(check, {"answer": Variable(Scalar.TEXT)}).evaluate({"answer": text})


PARSERS: Final[Mapping[str, Parser]] = {
    # answers
    "answers.binding": bind,
    "answers.reply text": _reply,
    "answers.reply marks": _numbered_reply,
    "answers.reply json": lambda text: answer_from_reply(_strict_json(text)),
    "tasks.checks": _checks,
    "check.plan": _plan,
    "pages.html_to_text": lambda text: None if is_dense(text, len(text)) else html_to_text(text),
    "pages.mhtml": _as_bytes(lambda data: (is_mhtml(data), read_mhtml(data))),
    "pages.classify": _facts,
    "pages.logins": lambda text: (
        walls.is_login_title(text), walls.is_registration_title(text), walls.mentions_accounts(text)
    ),
    "pages.soft_404": lambda text: (
        soft_404.is_missing_headline(text), soft_404.is_status_code_only(text),
        soft_404.says_page_is_missing([text], text),
    ),
    "urls.canonical_key": _in_url(canonical_key),
    "urls.wayback": _in_url(_archivable_url),
    "grounding.find_quote": lambda text: find_quote(fold(text), text[:2000]),
    "grounding.is_substantial": is_substantial,
    "grounding.missing_terms": lambda text: missing_terms(text, stems_of("a")),
    "grounding.covers_terms": lambda text: covers_terms(text, [text]),
    "grounding.drop_invented": _links_reply,
    # prompts and replies
    "prompts.neutralise": neutralise,
    "replies.error body": lambda text: error_for_response(_error(_read(text).message), now=0.0),
    "replies.error": lambda text: error_for_response(_error(text), now=0.0),
    "mind2web2.page_keys": _in_url(lambda text: (storage_key(text), lenient_key(text), address_of(text))),
    "mind2web2.html_to_markdown": html_to_markdown,
}  # fmt: skip
"""Parsers of untrusted text, by the place where they are used."""

REJECTIONS: Final = (ValueError, RecursionError, InvalidSubmission, DocumentRejected, TooManyParts, ReportRejected)
"""Errors with which parsers reject a text."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time of one parser for one shape; None if the child process was killed."""

    parser: str
    shape: str
    seconds: float | None
    error: str = ""


def run(parser: Parser, text: str) -> None:
    """Parse a text that may be rejected."""
    with suppress(*REJECTIONS):
        parser(text)


def measure(name: str, size: int, limit_s: int, shapes: Iterable[str]) -> Iterator[Cost]:
    """Measure one parser with these shapes in a child process, which is replaced if it exceeds the CPU time limit."""
    remaining = list(shapes)
    while remaining:
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(writable, "w", buffering=1) as pipe:
                _measure_in_child(name, (SHAPES[shape](size) for shape in remaining), limit_s, pipe)
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable) as pipe:
            results = [json.loads(line) for line in pipe]
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield from (Cost(name, shape, *result) for shape, result in zip(remaining, results, strict=False))
        if len(results) < len(remaining):
            reason = "" if status == -signal.SIGXCPU else f"its process ended with status {status}"
            yield Cost(name, remaining[len(results)], None, reason)
        remaining = remaining[len(results) + 1 :]


def _measure_in_child(name: str, texts: Iterable[str], limit_s: int, pipe: TextIO) -> None:
    """Write one line per shape: CPU seconds and error. The kernel kills the process at its limit."""
    for text in texts:
        error = ""
        began = _cpu_s()
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + limit_s + 1, resource.RLIM_INFINITY))
        try:
            run(PARSERS[name], text)
        except Exception as failed:  # noqa: BLE001 - reported by the parent
            error = f"{type(failed).__name__}: {str(failed)[:200]}"
        pipe.write(json.dumps([_cpu_s() - began, error]) + "\n")
