"""What must hold of every request that is built from a case, whatever a judge then makes of it."""

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
    """Sentences about what does not hold; none when all does."""
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
    yield from _seen(material, sent)
    page = sent.block("page")
    if len(page) > MAX_TEXT_CHARS + len(TRUNCATION_NOTICE):
        yield f"{len(page)} characters of a page are sent"
    answers = 2 * len(material.answer) + 2 * len(material.case.scenario.task)
    if len(sent.text) > MAX_TEXT_CHARS + MAX_LINKS_CHARS + answers + len(sent.rules) + ROOM_FOR_TAGS:
        yield f"{len(sent.text)} characters are sent"


def _seen(material: Material, sent: Sent) -> Iterator[str]:
    """Where payloads are seen, and must not be. The claim's own block says the claim: that is no leak."""
    shown = [block.text for block in sent.blocks if block.label != "claim"]
    if material.case.hidden and any(can_read(payload, text) for payload in material.reads for text in shown):
        yield "the hidden payload is shown"
