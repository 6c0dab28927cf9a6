"""RPC methods of the service, called without a process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Evidence
from judges.errors import JudgeBug
from judges.isolation.rpc_server import JudgeJob, RpcServer
from judges.isolation.serialization import from_base64
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from tests.fakes.judge_processes import BLOCK_BUILDER, SupportingLLM

URL = "https://shop.example/one"
PAGE = Evidence(
    capture=Capture(
        id="p1",
        url=URL,
        key=URL,
        outcome=CaptureOutcome.OK,
        captured_at=datetime(2026, 1, 2, tzinfo=UTC),
        duration_s=1.5,
        backend="by hand",
    ),
    text="The lamp is green.",
    links=(("more", f"{URL}/more"),),
    screenshots=(b"a screenshot",),
    digests=("d1", "d2"),
    hidden_text="sold out",
)
SCHEMA = {"name": "Lamp", "text": '{"type": "object", "properties": {"colour": {"type": "string"}}}'}


BODIES = BlobStore.open("memory://")


async def page(url: str) -> Evidence:
    return PAGE


async def call(method: str, llm: SupportingLLM | None = None, **params: Any) -> Any:
    job = JudgeJob(
        judge=Judge(task="t"),
        answer=Answer(name="answer_1.md", text="the answer"),
        agent="me",
        model="m",
        llm=llm or SupportingLLM(),
        block_builder=BLOCK_BUILDER,
        preparer=PagePreparer(BLOCK_BUILDER),
        evidence_for=page,
        bodies=BODIES,
    )
    return await RpcServer(job).handlers()[method](params)


@pytest.mark.parametrize(
    ("content", "text", "links", "screenshots"),
    [(None, "", 0, 0), ("text", PAGE.text, 1, 0), ("page", PAGE.text, 1, 1)],
)
async def test_page_has_only_the_requested_content(content: str | None, text: str, links: int, screenshots: int):
    sent = await call("evidence", url=URL, content=content)
    assert (sent["text"], len(sent["links"]), len(sent["screenshots"])) == (text, links, screenshots)
    assert (sent["capture"]["id"], sent["digests"]) == ("p1", ["d1", "d2"])


async def test_body_is_found_by_its_digest():
    blob = await BODIES.put(b"a body", "text/plain")
    assert from_base64(await call("evidence", sha256=blob.sha256, content="body")) == b"a body"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("evidence", {"url": URL, "content": "everything"}),
        ("complete", {"provider": "openai", "model": "m", "messages": []}),
        ("complete", {"model": "m", "messages": "x", "vote": 0, "params": {}}),
        ("complete", {"model": "m", "prompt": "x", "task": "t", "schema": {"name": "X", "text": "["}}),
        ("judge", {"model": "m", "task": "t", "claim": {"text": "x"}, "trials": 2}),
    ],
)
async def test_invalid_call_is_a_bug_of_the_judge(method: str, params: dict[str, Any]):
    with pytest.raises(JudgeBug):
        await call(method, **params)


async def test_prompt_of_an_extraction_is_written_by_the_service():
    llm = SupportingLLM(lambda request: {"colour": "green"})
    reply = await call("complete", llm, model="m", prompt="Which?", task="t", page=URL, schema=SCHEMA)
    assert (reply["text"], reply["evidence"]) == ('{"colour": "green"}', ["d1", "d2"])
    [request] = llm.requests
    assert (request.purpose, request.schema_name, request.parts["page"]) == ("extract", "Lamp", PAGE.text)
