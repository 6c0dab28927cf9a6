"""Model over HTTP that accepts only the beginning of a page: the bundle contains both requests with their responses,
and replays by the original request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from judges.llm.cached import FolderReplyCache
from judges.llm.call_recording import ParsedCallLog
from judges.llm.chat_body import response_format
from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from judges.llm.remote import SHORTENED_PAGE_NOTICE
from judges.llm.request_formats import SCHEMA_IN_WORDS
from judges.prompting.page_view import PARTS_MARKER
from judges.prompting.prompts import load_prompt
from judges.prompting.rendering import BinaryEvalResult
from tests.fakes.bundled import LAMPS, InMemoryJudging, PagesWithBodies, call_log, check_replay
from tests.standin.call import Call
from tests.standin.faults import MALFORMED, RATE_LIMITED, TOO_LONG, Fault
from tests.standin.llm import StandInLLM

MAX_CHARS = 10_000
SECRET_PLACE = "The lamp on the last shelf is red."
PAGE = f"Every lamp in this catalogue is green. {'One more lamp stands here. ' * 600}{SECRET_PLACE}"
SCHEMA = response_format(BinaryEvalResult)["json_schema"]["schema"]
WORDS = load_prompt("schema_words").render(schema=json.dumps(SCHEMA))
GREEN, RED, ODD, NEVER = "The lamp is green", "The lamp is red", "The lamp is odd", "The lamp is never seen"


def fault_for(call: Call) -> Fault | None:
    """Reject the whole page as too long. For the shortened page, one claim succeeds at the second attempt, and one
    never."""
    if len(call.page) > MAX_CHARS:
        return TOO_LONG
    if call.claim == NEVER or (call.claim == ODD and "could not be used" not in call.text):
        return MALFORMED
    return None


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=lambda call: call.claim != RED) as server:
        server.fault_for = fault_for
        server.faults.append(RATE_LIMITED)
        yield server


@pytest.fixture
async def world(tmp_path: Path, model: StandInLLM) -> AsyncIterator[InMemoryJudging]:
    llm, _ = make_client(
        "openai/gpt-6-luna",
        semaphore=asyncio.Semaphore(4),
        access=Access(openai_base_url=model.base_url),
        store=FolderReplyCache(tmp_path / "replies"),
    )
    yield InMemoryJudging(tmp_path, llm, capturer=PagesWithBodies({LAMPS: PAGE}))
    await llm.aclose()


def judge(*claims: str) -> str:
    lines = [f"    ctx.verify('c{n}', {claim!r}, sources=[{LAMPS!r}])" for n, claim in enumerate(claims)]
    return "\n".join(
        [
            "from judges.registry import judge",
            "@judge(task='museum', description='Of lamps.')",
            "async def museum(ctx):",
            *lines,
        ]
    )


def texts_of(log: ParsedCallLog, messages: list[dict[str, Any]]) -> str:
    """Return the text of a recorded request as the stand-in reads it."""

    def text(content: Any) -> str:
        if isinstance(content, str):
            return content
        pieces = content["pieces"]
        return "".join(
            piece if isinstance(piece, str) else log.piece(piece["sha256"]).data.decode() for piece in pieces
        )

    found = []
    for message in messages:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        found += [text(part["text"]) for part in parts if part["type"] == "text"]
    return "\n".join(found)


def as_sent(messages: str, form: str, *, is_repair: bool = False) -> str:
    """Return the text of a request in the recorded format. The words are a part of their own, except in a repair."""
    separator = "\n\n" if is_repair else "\n"
    return f"{messages}{separator}{WORDS}" if SCHEMA_IN_WORDS in form else messages


def exchanges(log: ParsedCallLog, call: dict[str, Any]) -> list[tuple[str, str]]:
    """Return each request of a recorded call with its response: the reply or the error."""
    second = call.get("shortened", call)
    found: list[tuple[str, str]] = []
    if second is not call:
        assert "unusable" not in call  # the whole page was rejected first
        found.append((as_sent(texts_of(log, call["messages"]), second.get("refused_form", "")), second["refusal"]))
    messages, is_repair = texts_of(log, second["messages"]), False
    for each in second.get("unusable", ()):
        found.append((as_sent(messages, each.get("form", ""), is_repair=is_repair), each["reply"]))
        messages = "\n".join([messages, *(message["content"] for message in each["then"])])
        is_repair = is_repair or bool(each["then"])
    last = as_sent(messages, call.get("form", ""), is_repair=is_repair)
    return [*found, (last, second["reply"])] if "reply" in second else found


async def test_bundle_contains_every_request_with_its_response(world: InMemoryJudging, model: StandInLLM):
    result = await world.judge(judge(GREEN, ODD, NEVER))
    bundle, _ = await world.bundle()
    log = call_log(bundle)
    recorded = [each for call in log.calls for each in exchanges(log, call)]
    retried = [each for call in log.calls for each in call.get("retried", ())]
    assert len(retried) == 1 and "429 Rate limit reached" in retried[0]
    assert len(recorded) + len(retried) == len(model.calls)
    limited, *answered = model.calls
    assert sorted(sent for sent, _ in recorded) == sorted(call.text for call in answered)
    assert limited.text in {sent for sent, _ in recorded}
    assert any(WORDS in sent for sent, _ in recorded)
    assert load_prompt("schema_words").text in log.prompts["schema_words@1"]
    for sent, result_or_error in recorded:
        is_whole = SHORTENED_PAGE_NOTICE not in sent and PARTS_MARKER not in sent
        assert ("maximum context length" in result_or_error) == is_whole
        if not is_whole and GREEN in sent:
            assert json.loads(result_or_error)["result"] is True
    assert result["usage"]["calls"] == sum(
        "maximum context length" not in result_or_error for _, result_or_error in recorded
    )


@pytest.mark.parametrize(
    ("claim", "status"), [(GREEN, "complete"), (ODD, "complete"), (RED, "complete"), (NEVER, "incomplete")]
)
async def test_bundle_is_valid_and_replays_without_a_model(
    world: InMemoryJudging, model: StandInLLM, claim: str, status: str
):
    result = await world.judge(judge(claim))
    assert result["status"] == status
    bundle, _ = await world.bundle()
    await model.stop()
    await check_replay(bundle, world)
