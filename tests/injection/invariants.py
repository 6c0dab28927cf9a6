"""Invariants of every request that is built from a case, independent of the judge's reply."""

from __future__ import annotations

from collections.abc import Iterator

from judges.llm.client import LLMRequest
from judges.prompting.page_view import MAX_LINKS_CHARS, MAX_TEXT_CHARS, TRUNCATION_NOTICE
from judges.prompting.rendering import Style
from tests.injection.material import Material
from tests.injection.reading import Sent, can_read, read_request

ROLES = {Style.NATIVE: ("system", "user"), Style.COMPAT: ("user",)}
ROOM_FOR_TAGS = 5_000


def broken_invariants(material: Material, style: Style, requests: list[LLMRequest]) -> list[str]:
    """Return one sentence per violated invariant."""
    problems = {problem for request in requests for problem in _problems(material, style, request)}
    return [f"{material.name}, {style}: {problem}" for problem in sorted(problems)]


def _problems(material: Material, style: Style, request: LLMRequest) -> Iterator[str]:
    sent = read_request(request)
    if sent.roles != ROLES[style]:
        yield f"roles are {sent.roles}"
    if style is Style.NATIVE and request.messages[0]["content"] != sent.rules:
        yield "the system message is not the rules and nothing else"
    if sent.outside.strip():
        yield f"outside of the blocks stands {sent.outside.strip()[:80]!r}"
    nonces = [block.nonce for block in sent.blocks]
    if len(set(nonces)) != len(nonces):
        yield "two blocks share a nonce"
    if any(sent.text.count(nonce) != 2 for nonce in nonces):
        yield "a nonce stands elsewhere than in its two tags"
    yield from _visible_payloads(material, sent)
    page = sent.block("page")
    if len(page) > MAX_TEXT_CHARS + len(TRUNCATION_NOTICE):
        yield f"{len(page)} characters of a page are sent"
    answers = 2 * len(material.answer) + 2 * len(material.case.scenario.task)
    if len(sent.text) > MAX_TEXT_CHARS + MAX_LINKS_CHARS + answers + len(sent.rules) + ROOM_FOR_TAGS:
        yield f"{len(sent.text)} characters are sent"


def _visible_payloads(material: Material, sent: Sent) -> Iterator[str]:
    """Yield a problem if a hidden payload is visible in a block other than the claim."""
    shown = [block.text for block in sent.blocks if block.label != "claim"]
    if material.case.hidden and any(can_read(payload, text) for payload in material.reads for text in shown):
        yield "the hidden payload is shown"
