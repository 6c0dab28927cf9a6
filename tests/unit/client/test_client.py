"""Synchronous and asyncio client with one scripted server."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from assay_client import (
    ApiError,
    AsyncClient,
    Client,
    ClientError,
    InvalidArgument,
    Job,
    ServerUnreachable,
    UnexpectedReply,
    WaitTimeout,
)

Handler = Callable[[httpx.Request], httpx.Response]


def job_json(job_id: str = "j1", status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "status": status,
        "stage": "judging",
        "progress": {"pages_done": 2, "pages_total": 3, "leaves_done": 1, "leaves_total": None},
        "attempts": 1,
        "error": None,
        "result_id": None,
        "created_at": "2026-01-02T03:04:05Z",
        "started_at": None,
        "finished_at": None,
        **more,
    }


class BlockingClient:
    """Adapter that runs each call of the asyncio client to completion."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client, self._runner = client, runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kw: Any) -> Any:
            async def settled() -> Any:
                found = getattr(self._client, name)(*args, **kw)
                return await found if inspect.isawaitable(found) else [item async for item in found]

            return self._runner.run(settled())

        return call


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Create a client of either kind for a handler."""
    with asyncio.Runner() as runner:

        def make(handler: Handler, **kw: Any) -> Any:
            transport = httpx.MockTransport(handler)
            if request.param == "sync":
                return Client("http://server/", transport=transport, **kw)
            return BlockingClient(AsyncClient("http://server/", transport=transport, **kw), runner)

        yield make


def respond_with(status: int, body: Any, headers: dict[str, str] | None = None) -> Handler:
    return lambda _request: httpx.Response(status, json=body, headers=headers)


def test_submit_sends_the_request_of_the_contract_and_reads_the_receipt(connect: Callable[..., Any]) -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        jobs = [{"id": "j1", "answer": "answer_1.md", "status": "queued", "url": "/v1/jobs/j1"}]
        return httpx.Response(202, json={"id": "s1", "agent": "otter", "task_id": "bridge", "jobs": jobs})

    receipt = connect(handler, api_key="secret").submit(
        "otter", "bridge", [("answer_1.md", "text"), ("answer_2.md", {"output": []})], run="r1", idempotency_key="k1"
    )

    (request,) = seen
    assert (request.method, request.url.path) == ("POST", "/v1/submissions")
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["idempotency-key"] == "k1"
    assert json.loads(request.content) == {
        "agent": "otter",
        "task_id": "bridge",
        "answers": [{"name": "answer_1.md", "text": "text"}, {"name": "answer_2.md", "reply": {"output": []}}],
        "run": "r1",
    }
    assert receipt.job_ids == ("j1",)


def test_lists_follow_the_cursor_to_the_end(connect: Callable[..., Any]) -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.query.decode())
        first = "cursor" not in request.url.params
        items = [job_json("j3"), job_json("j2")] if first else [job_json("j1")]
        return httpx.Response(200, json={"items": items, "next_cursor": "c2" if first else None})

    jobs = list(connect(handler).list_jobs(agent="otter"))

    assert [job["id"] for job in jobs] == ["j3", "j2", "j1"]
    assert seen == ["agent=otter", "agent=otter&cursor=c2"]


def test_wait_polls_only_open_jobs_and_keeps_their_order(connect: Callable[..., Any]) -> None:
    polls: list[str] = []
    updates: list[Job] = []

    def handler(request: httpx.Request) -> httpx.Response:
        job_id = request.url.path.rpartition("/")[2]
        polls.append(job_id)
        finished = job_id == "fast" or polls.count("slow") == 3
        return httpx.Response(200, json=job_json(job_id, "succeeded" if finished else "running"))

    jobs = connect(handler).wait(["slow", "fast"], poll_s=0, on_update=updates.append)

    assert [(job.id, job.status) for job in jobs] == [("slow", "succeeded"), ("fast", "succeeded")]
    assert polls == ["slow", "fast", "slow", "slow"]
    assert [job.id for job in updates] == polls


def test_wait_ends_when_all_unfinished_jobs_are_paused(connect: Callable[..., Any]) -> None:
    polls: list[str] = []
    error = {"code": "BUDGET", "detail": "Raise it"}

    def handler(request: httpx.Request) -> httpx.Response:
        job_id = request.url.path.rpartition("/")[2]
        polls.append(job_id)
        if job_id == "other" and polls.count("other") < 3:
            return httpx.Response(200, json=job_json(job_id))
        if job_id == "other":
            return httpx.Response(200, json=job_json(job_id, "succeeded"))
        return httpx.Response(200, json=job_json(job_id, "queued", stage="paused", error=error))

    jobs = connect(handler).wait(["paused", "other"], poll_s=0)

    assert [(job.status, job.is_paused) for job in jobs] == [("queued", True), ("succeeded", False)]
    assert polls == ["paused", "other"] * 3


def test_wait_times_out_and_names_the_open_jobs(connect: Callable[..., Any]) -> None:
    with pytest.raises(WaitTimeout) as caught:
        connect(respond_with(200, job_json())).wait(["j1"], timeout_s=0, poll_s=0)

    assert caught.value.pending == {"j1": "running (judging)"}


def test_events_are_read_until_the_stream_ends(connect: Callable[..., Any]) -> None:
    stream = (
        ': hello\n\nid: 1\nevent: progress\ndata: {"pages_done": 1}\n\nid: 2\nevent: status\n'
        'data: {"status":\ndata: "succeeded"}\n\n'
    )
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("last-event-id"))
        return httpx.Response(200, text=stream, headers={"content-type": "text/event-stream"})

    events = list(connect(handler).follow_job("j1", after="0"))

    assert [(event.id, event.name, event.data) for event in events] == [
        ("1", "progress", {"pages_done": 1}),
        ("2", "status", {"status": "succeeded"}),
    ]
    assert seen == ["0"]


def test_problem_response_becomes_an_api_error_with_its_fields(connect: Callable[..., Any]) -> None:
    problem = {
        "title": "Invalid",
        "detail": "The request is not valid.",
        "code": "INVALID",
        "errors": [{"path": "answers[0].text", "message": "is empty"}],
    }
    with pytest.raises(ApiError) as caught:
        connect(respond_with(422, problem)).submit("otter", "bridge", [("a.md", "")])

    assert (caught.value.status, caught.value.code) == (422, "INVALID")
    assert caught.value.errors == (("answers[0].text", "is empty"),)
    assert "answers[0].text: is empty" in str(caught.value)


@pytest.mark.parametrize(
    "handler",
    [
        lambda _request: httpx.Response(502, text="<html>bad gateway</html>"),
        respond_with(200, {"id": "j1"}),
    ],
    ids=["html error", "fields missing"],
)
def test_unexpected_reply_raises(connect: Callable[..., Any], handler: Handler) -> None:
    with pytest.raises(UnexpectedReply):
        connect(handler).wait(["j1"])


def test_failed_connection_names_the_url(connect: Callable[..., Any]) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ServerUnreachable, match="http://server") as caught:
        connect(handler).get_agent_summary("otter")

    assert caught.value.url == "http://server"


def test_both_clients_have_the_same_methods() -> None:
    def calls(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, callable)
            if not name.startswith("_") and name not in ("close", "aclose")
        }

    assert calls(Client) == calls(AsyncClient)


def test_wait_retries_a_busy_server_after_retry_after(connect: Callable[..., Any]) -> None:
    busy = {"type": "about:blank", "title": "x", "status": 503, "detail": "busy", "code": "UNAVAILABLE"}
    answers = [
        httpx.Response(503, json=busy, headers={"Retry-After": "0"}),
        httpx.Response(429, json=busy | {"status": 429}, headers={"Retry-After": "0"}),
        httpx.Response(200, json=job_json(status="succeeded")),
    ]

    (job,) = connect(lambda _request: answers.pop(0)).wait(["j1"], poll_s=0)

    assert job.status == "succeeded"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda client: client.get_job("\udfff"), "part 1 of /v1/jobs/{}"),
        (lambda client: list(client.list_jobs(since=datetime(2026, 1, 1, tzinfo=UTC))), "since"),
        (lambda client: client.create_submission({}, idempotency_key="a\r\nX: b"), "Idempotency-Key"),
        (lambda client: client.verify_answer({"deadline_s": math.nan}), "body.deadline_s"),
    ],
)
def test_argument_that_cannot_be_sent_is_refused_with_its_field(
    connect: Callable[..., Any], call: Callable[[Any], Any], field: str
):
    with pytest.raises(InvalidArgument) as refused:
        call(connect(never_called))
    assert refused.value.field == field
    assert isinstance(refused.value, ClientError)


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("url", "key", "field"),
    [
        ("http://server:99999", None, "url"),
        ("server:8000", None, "url"),
        ("http://server", "key\n", "api_key"),
    ],
)
def test_unusable_address_or_key_is_refused(client: Any, url: Any, key: str | None, field: str):
    with pytest.raises(InvalidArgument) as refused:
        client(url, api_key=key)
    assert refused.value.field == field


def never_called(request: httpx.Request) -> httpx.Response:
    raise AssertionError("a request was sent")
