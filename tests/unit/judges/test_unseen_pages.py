"""A page that was not fully seen can support a claim, with a quote that code found, but cannot refute it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cache.capture import CaptureOutcome, Evidence, PageKind
from judges.errors import LLMUnavailable
from judges.grounding.support import Transcription
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.lexical import LexicalClient
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import MAX_PARTS, PagePreparer
from judges.prompting.rendering import Style
from judges.verifier import ClaimQuestion, Verifier
from rubrics.verdict import Claim, Outcome, Reason, Verdict
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import jpeg, page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
SENTENCE = "The Halden Bridge opened in 1931."
TRUE, WRONG = "The Halden Bridge opened in 1931.", "The Halden Bridge opened in 1934."
TEXT = f"{SENTENCE} " + "It crosses the river near the old mill and the market square. " * 5
GARBLED = "".join(chr(0xF000 + ord(char)) if char.isalnum() else char for char in TEXT)
"""Text of a PDF whose font maps its letters to private-use characters."""
JPEG, TALL = jpeg(), jpeg(1100, 2000)

PASSED = (Outcome.PASSED, None)
REFUTED = (Outcome.FAILED, Reason.REFUTED)
UNSEEN = (Outcome.NOT_JUDGED, Reason.PAGE_NOT_FULLY_SEEN)


class TextReader(RuleLLM):
    """Model that supports a claim that the page in its request contains, with that quote."""

    def __init__(self, *, sees_pictures: bool = True, quotes: bool = True, in_picture: str = "") -> None:
        super().__init__()
        self._sees_pictures, self._has_quotes, self._in_picture = sees_pictures, quotes, in_picture

    async def complete(self, request: LLMRequest) -> LLMReply:
        reply = await super().complete(request)
        return replace(reply, text_only=not self._sees_pictures)

    def _reply_for(self, request: LLMRequest) -> Any:
        content = request.messages[-1]["content"]
        shown = content if isinstance(content, str) else content[-1]["text"]
        shown = shown[: shown.rindex("<claim ")] + self._in_picture
        claim = request.parts["claim"]
        if request.schema is Transcription:
            return Transcription(passages=[self._in_picture] if self._in_picture else [])
        schema: Any = request.schema
        quotes = [claim] if self._has_quotes and claim in shown else []
        return schema(reasoning="read", quotes=quotes, result=claim in shown)


def evidence(text: str = TEXT, *, screenshots: tuple[bytes, ...] = (), **capture: Any) -> Evidence:
    found = page(text=text, screenshots=screenshots)
    return replace(found, capture=replace(found.capture, **capture))


def partial(detail: str, **more: Any) -> Evidence:
    return evidence(outcome=CaptureOutcome.PARTIAL, detail=detail, **more)


async def judged(
    llm: LLMClient, claim: str, shown: Evidence, *, style: Style = Style.NATIVE, model: str = "m", **options: Any
) -> Verdict:
    judge = Verifier(llm, model, block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER), style=style)
    return await judge.settle(ClaimQuestion(claim=Claim(text=claim), task="t", answer="a", evidence=shown, **options))


@pytest.mark.parametrize(
    ("shown", "claim", "decided"),
    [
        (evidence(), TRUE, PASSED),
        (evidence(), WRONG, REFUTED),
        (partial("700 pages left out: only the first ones are read", kind=PageKind.PDF), TRUE, PASSED),
        (partial("700 pages left out: only the first ones are read", kind=PageKind.PDF), WRONG, UNSEEN),
        (partial(""), WRONG, UNSEEN),
        # The text is everything that claims rely on, so screenshots that are cut do not matter.
        (evidence(screenshots=(TALL,) * 6), WRONG, REFUTED),
        (evidence("Menu", screenshots=(TALL,) * 6), WRONG, UNSEEN),
        (evidence("Menu", screenshots=(JPEG,)), WRONG, REFUTED),
        (evidence(GARBLED, screenshots=(JPEG,), kind=PageKind.PDF), WRONG, UNSEEN),
        (evidence(f"{GARBLED}\n{TEXT}", screenshots=(JPEG,), kind=PageKind.PDF), TRUE, PASSED),
        (evidence("\ufffd" * 20 + TEXT, kind=PageKind.TEXT), WRONG, UNSEEN),
        # A few unreadable characters and icons.
        (evidence("\ufffd" * 9 + "\uf09a \uf099 \uf16d" + TEXT), WRONG, REFUTED),
    ],
)  # fmt: skip
async def test_page_that_was_not_fully_seen_supports_but_does_not_refute(
    shown: Evidence, claim: str, decided: tuple[Outcome, Reason | None]
):
    verdict = await judged(TextReader(), claim, shown)
    assert (verdict.outcome, verdict.reason) == decided
    assert verdict.grounded is (True if decided is PASSED else None)
    assert bool(verdict.quotes) is (decided is PASSED)


@pytest.mark.parametrize(
    ("screenshots", "options", "decided"),
    [
        ((JPEG,), {}, UNSEEN),
        ((), {}, REFUTED),
    ],
)
@pytest.mark.parametrize(("llm", "model"), [(TextReader(sees_pictures=False), "m"), (LexicalClient(), "lexical")])
async def test_scan_is_not_judged_by_a_judge_that_sees_no_pictures(
    llm: LLMClient,
    model: str,
    screenshots: tuple[bytes, ...],
    options: dict[str, Any],
    decided: tuple[Outcome, Reason | None],
):
    scan = evidence("Page 1", screenshots=screenshots, kind=PageKind.PDF)
    verdict = await judged(llm, WRONG, scan, model=model, **options)
    assert (verdict.outcome, verdict.reason) == decided


@pytest.mark.parametrize(
    "shown",
    [
        evidence("Menu", screenshots=(TALL,) * 6),
        partial("", text="Menu", screenshots=(JPEG,)),
        evidence(GARBLED, screenshots=(JPEG,), kind=PageKind.PDF),
    ],
)
async def test_transcribed_quote_supports_a_claim_on_a_page_that_was_not_fully_seen(shown: Evidence):
    verdict = await judged(TextReader(in_picture=f"{SENTENCE} It was built by hand."), TRUE, shown)
    assert (verdict.outcome, verdict.grounded) == (Outcome.PASSED, True)


@pytest.mark.parametrize(
    ("style", "claim", "decided"),
    [
        (Style.NATIVE, TRUE, UNSEEN),
        (Style.COMPAT, TRUE, PASSED),
        (Style.COMPAT, WRONG, UNSEEN),
    ],
)
async def test_supported_claim_without_a_quote_is_not_judged_except_for_public_scripts(
    style: Style, claim: str, decided: tuple[Outcome, Reason | None]
):
    verdict = await judged(TextReader(quotes=False), claim, partial("the document was still loading"), style=style)
    assert (verdict.outcome, verdict.reason) == decided


def long_page(*sentences: str, chars: int) -> Evidence:
    """Return a page with the sentences in its middle, which no request shows whole: few characters, many tokens."""
    filler = [f"{number} {'x. ' * 15}" for number in range(chars // 50)]
    middle = len(filler) // 2
    return evidence("\n".join([*filler[:middle], *sentences, *filler[middle:]]))


@pytest.mark.parametrize(
    ("model", "shown", "claim", "decided", "requests"),
    [
        ("m", long_page(SENTENCE, chars=350_000), WRONG, REFUTED, 3),
        pytest.param("m", long_page(SENTENCE, chars=750_000), WRONG, UNSEEN, MAX_PARTS, marks=pytest.mark.slow),
        ("lexical", long_page(SENTENCE, chars=300_000), WRONG, REFUTED, 2),
        ("m", long_page(GARBLED * 300, SENTENCE, chars=300_000), WRONG, UNSEEN, 4),
        ("m", long_page(GARBLED * 300, SENTENCE, chars=300_000), TRUE, PASSED, 1),
    ],
)  # fmt: skip
async def test_long_page_is_refuted_only_if_all_of_its_parts_were_shown(
    model: str, shown: Evidence, claim: str, decided: tuple[Outcome, Reason | None], requests: int
):
    llm: Any = LexicalClient() if model == "lexical" else TextReader()
    verdict = await judged(llm, claim, shown, model=model, trials=1)
    assert (verdict.outcome, verdict.reason) == decided
    assert (verdict.usage.calls, len(verdict.requests)) == (requests, requests)
    quoted = [claim.rstrip(".")] if decided is PASSED else []
    assert [shown.text[quote.start : quote.end] for quote in verdict.quotes] == quoted
    assert verdict.grounded is (True if decided is PASSED else None)


def _page_lines(messages: Any) -> list[str]:
    lines: list[str] = messages[-1]["content"][-1]["text"].split("\n")
    return lines


async def test_parts_of_a_page_show_all_of_its_text():
    shown, llm = long_page(SENTENCE, chars=250_000), TextReader()
    await judged(llm, WRONG, shown, trials=1)
    assert len(llm.requests) > 1
    assert set(shown.text.split("\n")) <= {line for request in llm.requests for line in _page_lines(request.messages)}


async def test_fault_of_the_model_ends_the_requests_for_the_parts_of_a_page():
    llm = RuleLLM(lambda request: LLMUnavailable("503"))
    verdict = await judged(llm, WRONG, long_page(SENTENCE, chars=250_000), trials=1)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_UNAVAILABLE)
    assert len(llm.requests) == 1


async def test_public_script_is_shown_the_beginning_of_a_long_page_once():
    llm = TextReader()
    verdict = await judged(llm, TRUE, long_page(SENTENCE, chars=400_000), style=Style.COMPAT, trials=1)
    assert (verdict.outcome, verdict.reason) == UNSEEN
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (partial("700 pages left out"), "700 pages left out"),
        (
            evidence(GARBLED),
            "its text is garbled (158 of 278 characters are no writing; upload a readable copy, or use",
        ),
    ],
)
async def test_reasoning_names_what_was_not_seen_and_the_source_keeps_its_judgement(shown: Evidence, cause: str):
    verdict = await judged(TextReader(), WRONG, shown)
    assert cause in verdict.reasoning
    assert verdict.reasoning.endswith("read")
