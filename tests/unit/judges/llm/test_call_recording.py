"""Call log: complete and deduplicated record of model requests and replies."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judges.errors import LLMOutputUnusable, LLMUnavailable, ShorterPage, UnusableKind, UnusableReply
from judges.llm.call_recording import (
    ActiveRecorder,
    CallLogUnreadable,
    CallRecorder,
    ParsedCallLog,
    join_pieces,
    portable_request_key,
    read_calls,
    recorded_request_key,
    recording_calls,
)
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.images import DataURI, image_part
from judges.llm.observed import ObservedLLM
from judges.llm.remote import SHORTENED_PAGE_NOTICE, with_shortened_page
from judges.prompting.blocks import BlockBuilder
from judges.prompting.prompts import load_prompt
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage
from tests.fakes.llm import RuleLLM

PAGE = "A long page about lamps. " * 200
PROMPT = load_prompt("verify_page")
JPEG = b"\xff\xd8 a picture"


def request(claim: str, *, secret: bytes = b"one secret of many", vote: int = 0, picture: bool = False) -> LLMRequest:
    block_builder = BlockBuilder(secret)
    text = f"{block_builder.block('page', PAGE)}\n\n{block_builder.block('claim', claim)}"
    content = [image_part(DataURI.of_jpeg(JPEG))] if picture else []
    return LLMRequest(
        model="o4-mini",
        messages=(
            {"role": "system", "content": PROMPT.text},
            {"role": "user", "content": [*content, {"type": "text", "text": text}]},
        ),
        schema=BinaryEvalResult,
        purpose="verify",
        prompt=PROMPT.ref,
        vote=vote,
        parts={"claim": claim},
    )


async def recorded(*requests: LLMRequest, llm: Any = None, **options: Any) -> ParsedCallLog:
    recorder = CallRecorder("res_1", **options)
    client = ObservedLLM(llm or RuleLLM(), (recorder,))
    for each in requests:
        with contextlib.suppress(LLMUnavailable, LLMOutputUnusable):
            await client.complete(each)
    body = await recorder.finish()
    recorder.close()
    return read_calls(body)


def text_of(calls: ParsedCallLog) -> Any:
    return lambda sha256: calls.piece(sha256).data.decode()


async def test_requests_and_replies_are_read_back_exactly():
    asked = [request("the lamp is green"), request("the lamp is red", vote=1)]
    calls = await recorded(*asked)
    assert len(calls.calls) == 2
    for call in calls.calls:
        written = next(each for each in asked if each.vote == call["vote"])
        found = call["messages"][1]["content"][0]["text"]
        assert join_pieces(found, text_of(calls)) == written.messages[1]["content"][0]["text"]
        assert json.loads(call["reply"])["result"] is True
    assert calls.prompts == {PROMPT.ref: PROMPT.text}
    assert [schema["name"] for schema in calls.schemas.values()] == ["BinaryEvalResult"]


async def test_page_of_many_claims_is_stored_once():
    calls = await recorded(*(request(f"claim {n}", vote=vote) for n in range(20) for vote in range(3)))
    pages = [sha256 for sha256 in calls.pieces if PAGE.strip() in calls.piece(sha256).data.decode()]
    assert len(calls.calls) == 60
    assert len(pages) == 1


async def test_picture_stored_with_its_page_is_not_stored_again():
    sha256 = hashlib.sha256(JPEG).hexdigest()
    calls = await recorded(request("x", picture=True))
    assert calls.piece(sha256).data == JPEG
    assert calls.piece(sha256).kind == "image/jpeg"
    without = await recorded(request("x", picture=True), kept=lambda found: found == sha256)
    assert sha256 not in without.pieces
    assert without.calls[0]["messages"][1]["content"][0]["image_url"]["url"]["picture"] == sha256


@pytest.mark.parametrize("is_kept", [True, False])
async def test_known_picture_hash_is_trusted_only_if_the_picture_is_stored(is_kept: bool):
    claimed_sha256 = "ab" * 32  # not the hash of the picture, to detect whether it is recomputed
    asked = request("x")
    asked = replace(
        asked, messages=({"role": "user", "content": [image_part(DataURI.of_jpeg(JPEG, sha256=claimed_sha256))]},)
    )
    calls = await recorded(asked, kept=lambda found: is_kept and found == claimed_sha256)
    found = calls.calls[0]["messages"][0]["content"][0]["image_url"]["url"]
    sha256 = claimed_sha256 if is_kept else hashlib.sha256(JPEG).hexdigest()
    assert found == {"picture": sha256, "media_type": "image/jpeg"}
    assert (sha256 in calls.pieces) is not is_kept


async def test_fault_is_recorded_with_secrets_masked():
    llm = RuleLLM(lambda asked: LLMUnavailable("wrong key sk-1234", usage=Usage(calls=1)))
    calls = await recorded(request("x"), llm=llm, mask=lambda text: text.replace("sk-1234", "[redacted]"))
    assert calls.calls[0]["fault"] == {
        "error": "LLMUnavailable",
        "reason": "llm_unavailable",
        "message": "wrong key [redacted]",
    }
    assert calls.calls[0]["usage"]["calls"] == 1
    assert "reply" not in calls.calls[0]


UNUSABLE = UnusableReply(
    kind=UnusableKind.MALFORMED,
    text="I think so.",
    detail="",
    model="o4-mini",
    usage=Usage(calls=1),
    then=({"role": "user", "content": "Once more."},),
)


@pytest.mark.parametrize("usable", [True, False])
async def test_unusable_replies_are_recorded_with_the_repair_messages(usable: bool):
    class Repaired(RuleLLM):
        async def complete(self, request: LLMRequest) -> LLMReply:
            reply = await super().complete(request)
            if usable:
                return replace(reply, unusable=(UNUSABLE,))
            error = LLMOutputUnusable(UnusableKind.EMPTY, "the reply is empty")
            error.unusable = (UNUSABLE, replace(UNUSABLE, text="", then=()))
            raise error

    calls = await recorded(request("the lamp is green"), llm=Repaired())
    [call] = calls.calls
    assert ("reply" in call, "fault" in call) == (usable, not usable)
    first = call["unusable"][0]
    assert (first["kind"], first["reply"], first["then"]) == ("malformed", UNUSABLE.text, [*UNUSABLE.then])
    assert [len(each["then"]) for each in call["unusable"]] == ([1] if usable else [1, 0])
    assert load_prompt("repair").ref in calls.prompts
    assert recorded_request_key(call, text_of(calls)) == portable_request_key(request("the lamp is green"))


async def test_request_key_is_equal_in_another_installation():
    calls = await recorded(request("the lamp is green", picture=True))
    key = recorded_request_key(calls.calls[0], text_of(calls))
    assert portable_request_key(request("the lamp is green", picture=True, secret=b"another secret of another")) == key


@pytest.mark.parametrize(
    "other",
    [
        request("the lamp is red", picture=True),
        request("the lamp is green", vote=1, picture=True),
        request("the lamp is green"),
    ],
    ids=["claim", "vote", "picture"],
)
async def test_different_request_has_another_key(other: LLMRequest):
    calls = await recorded(request("the lamp is green", picture=True))
    assert portable_request_key(other) != recorded_request_key(calls.calls[0], text_of(calls))


async def test_replies_to_equal_requests_stay_in_order():
    verdicts = iter([True, False, True])
    calls = await recorded(*[request("x")] * 3, llm=RuleLLM(lambda asked: next(verdicts)))
    assert [json.loads(call["reply"])["result"] for call in calls.calls] == [True, False, True]


async def test_pieces_over_the_size_limit_are_listed_as_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("judges.llm.call_recording.MAX_PIECES_BYTES", 10)
    calls = await recorded(request("x"))
    assert hashlib.sha256(f"\n{PAGE}\n".encode()).hexdigest() in calls.left_out
    assert calls.pieces == ()


async def test_clients_opened_by_a_script_are_recorded_while_it_runs():
    recorder = CallRecorder("res_1")
    client = ObservedLLM(RuleLLM(), (ActiveRecorder(),))
    await client.complete(request("before"))
    with recording_calls(recorder):
        await asyncio.gather(*(client.complete(request(f"claim {n}")) for n in range(5)))
    await client.complete(request("after"))
    assert recorder.calls == 5
    recorder.close()


@pytest.mark.parametrize(
    "body", [b"", b"ASSAYCALLS1\n", b"ASSAYCALLS1\n" + bytes(8) + b"x", b"ASSAYCALLS2\nabc", b"\0" * 40]
)
def test_invalid_call_log_is_rejected(body: bytes):
    with pytest.raises(CallLogUnreadable):
        read_calls(body)


async def test_reply_without_text_is_recorded_by_its_values():
    class Silent:
        async def complete(self, asked: LLMRequest) -> LLMReply:
            parsed = BinaryEvalResult(reasoning="so", result=True)
            return LLMReply(text="", parsed=parsed, model="m", usage=Usage())

        async def aclose(self) -> None: ...

    calls = await recorded(request("x"), llm=Silent())
    assert json.loads(calls.calls[0]["reply"])["reasoning"] == "so"


WHOLE = replace(UNUSABLE, text="Whole.")
LESS = replace(UNUSABLE, text="Less.")
SHORTER = ShorterPage(refusal="400 too long sk-1234", page_chars=700, unusable=(WHOLE,))


@pytest.mark.parametrize("end", ["counts", "counts for nothing", "fault"])
async def test_original_and_shortened_requests_are_recorded(end: str):
    class Shortening(RuleLLM):
        async def complete(self, request: LLMRequest) -> LLMReply:
            reply = await super().complete(request)
            if end == "counts":
                return replace(reply, unusable=(LESS,), shorter_page=SHORTER)
            error = LLMUnavailable("not seen", usage=Usage(calls=3))
            error.unusable = (LESS,)
            negative = replace(SHORTER, text='{"result": false}', model="o4-mini")
            error.shorter_page = SHORTER if end == "fault" else negative
            raise error

    asked = request("the lamp is green", picture=True)
    calls = await recorded(asked, llm=Shortening(), mask=lambda text: text.replace("sk-1234", "[redacted]"))
    [call] = calls.calls
    second = call["shortened"]
    assert ("reply" in call, "fault" in call) == (end == "counts", end != "counts")
    assert (second["refusal"], second["page_chars"]) == ("400 too long [redacted]", 700)
    assert [each["reply"] for each in (*call["unusable"], *second["unusable"])] == ["Whole.", "Less."]
    expected = {"counts": call.get("reply"), "counts for nothing": '{"result": false}', "fault": None}
    assert second.get("reply") == expected[end]
    assert second.get("by") == (None if end == "fault" else "o4-mini")

    def text_in(messages: Any) -> str:
        text = messages[1]["content"][1]["text"]
        return text if isinstance(text, str) else join_pieces(text, text_of(calls))

    assert text_in(call["messages"]) == asked.messages[1]["content"][1]["text"]
    assert text_in(second["messages"]) == with_shortened_page(asked, 700).messages[1]["content"][1]["text"]
    assert SHORTENED_PAGE_NOTICE in text_in(second["messages"])
    assert second["messages"][1]["content"][0] == call["messages"][1]["content"][0]  # the same picture, by its hash
    assert load_prompt("repair").ref in calls.prompts
    assert recorded_request_key(call, text_of(calls)) == portable_request_key(asked)


async def test_failed_attempts_are_recorded_with_secrets_masked():
    class Retrying(RuleLLM):
        async def complete(self, request: LLMRequest) -> LLMReply:
            return replace(await super().complete(request), retried=("429 for sk-1234", "no connection"))

    calls = await recorded(request("x"), llm=Retrying(), mask=lambda text: text.replace("sk-1234", "[redacted]"))
    assert calls.calls[0]["retried"] == ["429 for [redacted]", "no connection"]
    assert "retried" not in (await recorded(request("x"))).calls[0]


async def test_cancelled_call_is_recorded_without_reply():
    recorder, never = CallRecorder("res_1"), asyncio.Event()
    client = ObservedLLM(RuleLLM(pause=lambda asked: never.wait()), (recorder,))
    asked = [request("the lamp is green"), replace(request("the lamp is red"), cache_only=True)]
    tasks = [asyncio.create_task(client.complete(each)) for each in asked]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    late = asyncio.create_task(client.complete(request("late")))
    await asyncio.sleep(0)
    calls = read_calls(await recorder.finish())
    late.cancel()
    await asyncio.wait([late])
    recorder.close()
    [call] = calls.calls  # lookups are not sent; calls that end after the record was closed are not part of it
    assert call["called_off"] is True
    assert "reply" not in call and "fault" not in call
    assert recorded_request_key(call, text_of(calls)) == portable_request_key(asked[0])
    assert all(task.cancelled() for task in (*tasks, late))


async def test_reply_is_returned_although_the_disk_takes_no_call_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    recorder = CallRecorder("res_1")
    client = ObservedLLM(RuleLLM(), (recorder,))
    large = image_part(DataURI.of_jpeg(bytes(1_000_000)))
    for claim in ("first", "second"):
        asked = request(claim)
        system, user = asked.messages
        assert (await client.complete(replace(asked, messages=(system, {**user, "content": [large]})))).parsed
    with pytest.raises(OSError, match="missing"):
        await recorder.finish()
    recorder.close()
