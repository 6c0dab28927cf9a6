from __future__ import annotations

import asyncio
import io
import json
import tarfile
import threading
import zipfile
from typing import Any

import httpx
import pytest

from answers import public_layout, submission
from app.api import submissions
from tests.fakes.threads import record_calls
from tests.integration.app.api.api_calls import assert_problem, submission_body, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

MIB = 1024 * 1024


def reply(text: str, *, start: int, end: int) -> dict[str, Any]:
    """Return a reply of OpenAI with one citation."""
    cited = {"type": "url_citation", "start_index": start, "end_index": end, "url": "https://a.example/", "title": "A"}
    content = {"type": "output_text", "text": text, "annotations": [cited]}
    return {"output": [{"type": "message", "role": "assistant", "content": [content]}]}


async def nothing_stored(api: httpx.AsyncClient) -> bool:
    return bool((await api.get("/v1/jobs")).json() == {"items": [], "next_cursor": None})


async def test_submission_creates_one_job_per_answer(api: httpx.AsyncClient):
    answers = [{"name": "answer_1", "text": "one"}, {"name": "answer_2.md", "text": "two"}]
    response = await api.post("/v1/submissions", json=submission_body(answers=answers, run="r", metadata={"a": 1}))
    assert response.status_code == 202
    accepted = response.json()
    assert response.headers["location"] == f"/v1/submissions/{accepted['id']}"
    assert [(job["answer"], job["status"]) for job in accepted["jobs"]] == [
        ("answer_1.md", "queued"),
        ("answer_2.md", "queued"),
    ]
    found = (await api.get(response.headers["location"])).json()
    assert found["jobs"] == accepted["jobs"]
    assert (found["agent"], found["run"], found["metadata"]) == ("demo", "r", {"a": 1})
    job = (await api.get(accepted["jobs"][0]["url"])).json()
    assert job["status"] == "queued"
    assert job["progress"] == {"pages_done": 0, "pages_total": 0, "leaves_done": 0, "leaves_total": 0}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"agent": "../etc"}, "agent"),
        ({"agent": 7}, "agent"),
        ({"task_id": None}, "task_id"),
        ({"answers": []}, "answers"),
        ({"answers": "text"}, "answers"),
        ({"answers": [{"name": "answer_1"}]}, "answers.0"),
        ({"answers": [{"name": "answer_1", "text": "x", "reply": {"output": []}}]}, "answers.0"),
        ({"answers": [{"name": "answer_1", "reply": "x"}]}, "answers.0.reply"),
        ({"answers": [{"name": "answer_1", "reply": {"output": []}}]}, "answers.0.reply"),
        (
            {"answers": [{"name": "a", "reply": reply("It is Paris.", start=3, end=99)}]},
            "answers.0.reply.output.0.content.0.annotations.0.end_index",
        ),
        ({"answers": [{"name": "a", "text": "x"}, {"name": "a.md", "text": "y"}]}, "answers.1.name"),
        ({"answers": [{"name": "a", "text": "x", "extra": 1}]}, "answers.0.extra"),
        ({"model": "nobody/gpt"}, "model"),
        ({"model": "not a model"}, "model"),
        ({"run": 5}, "run"),
        ({"metadata": [1]}, "metadata"),
        ({"surprise": True}, "surprise"),
    ],
)
async def test_invalid_field_is_rejected_and_nothing_is_stored(
    api: httpx.AsyncClient, fields: dict[str, Any], path: str
):
    read = assert_problem(await api.post("/v1/submissions", json=submission_body(**fields)), 422)
    assert path in [error["path"] for error in read["errors"]]
    assert await nothing_stored(api)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe{}",
        b'{"agent": "\xff"}',
        b'{"agent": "\\ud800"}',
        b'{"agent": NaN}',
        b"[" * 100_000,
        b'{"agent": ' + b"1" * 10_000 + b"}",
        json.dumps(submission_body(metadata={"n": 1})).replace("1}", "1e999}").encode(),
        json.dumps(submission_body(metadata={"deep": None})).replace("null", "[" * 500 + "]" * 500).encode(),
    ],
)
async def test_malformed_json_returns_422(api: httpx.AsyncClient, raw: bytes):
    response = await api.post("/v1/submissions", content=raw, headers={"Content-Type": "application/json"})
    assert assert_problem(response, 422)["errors"]
    assert await nothing_stored(api)


async def test_other_media_types_return_415(api: httpx.AsyncClient):
    assert_problem(await api.post("/v1/submissions", data={"agent": "demo"}), 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_answer_over_one_mebibyte_returns_413(api: httpx.AsyncClient):
    answers = [{"name": "a", "text": "x" * (MIB + 1)}]
    read = assert_problem(await api.post("/v1/submissions", json=submission_body(answers=answers)), 413)
    assert [error["path"] for error in read["errors"]] == ["answers.0.text"]
    assert await nothing_stored(api)


async def test_reply_is_stored_as_markdown_with_its_citations_as_links(open_api: OpenApi):
    answers = [{"name": "answer_1", "reply": reply("東京😀 is Paris. So.", start=0, end=13)}]
    async with open_api(workers=1) as api:
        (job_id,) = await submit(api, answers=answers)
        job = await wait_for_job(api, job_id)
        stored = await api.get(f"/v1/results/{job['result_id']}/answer")
    assert stored.text == "東京😀 is Paris ([A](https://a.example/)). So."


async def test_reply_over_one_mebibyte_returns_413(api: httpx.AsyncClient):
    answers = [{"name": "a", "reply": reply("x" * (2 * MIB), start=0, end=1)}]
    read = assert_problem(await api.post("/v1/submissions", json=submission_body(answers=answers)), 413)
    assert [error["path"] for error in read["errors"]] == ["answers.0.reply"]
    assert await nothing_stored(api)


async def test_request_with_a_long_answer_and_a_key_is_hashed_outside_the_event_loop(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    threads = record_calls(monkeypatch, submissions, "key_of_request")
    body = submission_body(answers=[{"name": "a", "text": "x" * 20_000}])
    response = await api.post("/v1/submissions", json=body, headers={"Idempotency-Key": "long"})
    assert response.status_code == 202, response.text
    assert threads and threading.current_thread() not in threads


async def test_chunked_body_over_limit_is_rejected(open_api: OpenApi):
    async def endless():
        for _ in range(1000):
            yield b" " * 1024

    async with open_api(workers=0, max_body_bytes=2048) as api:
        headers = {"Content-Type": "application/json"}
        assert_problem(await api.post("/v1/submissions", content=endless(), headers=headers), 413)


async def test_idempotency_key_returns_first_response_and_rejects_other_body(api: httpx.AsyncClient):
    key = {"Idempotency-Key": "once"}
    first = await api.post("/v1/submissions", json=submission_body(), headers=key)
    again = await api.post("/v1/submissions", json=submission_body(), headers=key)
    assert again.status_code == first.status_code == 202
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    other = await api.post("/v1/submissions", json=submission_body(run="other"), headers=key)
    reused = assert_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert [error["path"] for error in reused["errors"]] == ["Idempotency-Key"]
    assert len((await api.get("/v1/jobs")).json()["items"]) == 1


async def test_concurrent_equal_requests_create_one_submission(api: httpx.AsyncClient):
    key = {"Idempotency-Key": "storm"}
    responses = await asyncio.gather(
        *(api.post("/v1/submissions", json=submission_body(), headers=key) for _ in range(20))
    )
    accepted = [response.json()["id"] for response in responses if response.status_code == 202]
    assert len(set(accepted)) == 1
    for response in responses:
        if response.status_code != 202:
            assert_problem(response, 409, "IDEMPOTENCY_KEY_IN_PROGRESS")
            assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel"])
async def test_invalid_idempotency_key_returns_422(api: httpx.AsyncClient, key: str):
    response = await api.post(
        "/v1/submissions", json=submission_body(), headers={b"Idempotency-Key": key.encode("latin-1")}
    )
    assert_problem(response, 422)


async def test_task_without_judge_returns_404(api: httpx.AsyncClient):
    read = assert_problem(
        await api.post("/v1/submissions", json=submission_body(task_id="unknown")), 404, "UNKNOWN_TASK"
    )
    assert [error["path"] for error in read["errors"]] == ["task_id"]
    assert await nothing_stored(api)


async def test_answer_with_too_many_urls_returns_413(api: httpx.AsyncClient):
    text = " ".join(f"https://example.org/{n}" for n in range(201))
    read = assert_problem(
        await api.post("/v1/submissions", json=submission_body(answers=[{"name": "a", "text": text}])), 413
    )
    assert [error["path"] for error in read["errors"]] == ["answers.0.text"]


async def test_integers_accept_a_zero_fraction(api: httpx.AsyncClient):
    accepted = (await api.post("/v1/submissions", json=submission_body(priority=7.0))).json()
    assert (await api.get(f"/v1/submissions/{accepted['id']}")).json()["priority"] == 7
    assert_problem(await api.post("/v1/submissions", json=submission_body(priority=7.5)), 422)


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def tarred(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


FILES = {"demo/capital/answer_1.md": "Paris", "demo/capital/answer_2.md": "Lyon", "demo/broken/answer_1.md": "x"}


@pytest.mark.parametrize("pack", [zipped, tarred])
async def test_archive_creates_one_submission_per_task(api: httpx.AsyncClient, pack):
    response = await api.post("/v1/submissions/archive", files={"file": ("answers", pack(FILES))})
    assert response.status_code == 202, response.text
    found = {
        submission["task_id"]: [job["answer"] for job in submission["jobs"]]
        for submission in response.json()["submissions"]
    }
    assert found == {"capital": ["answer_1.md", "answer_2.md"], "broken": ["answer_1.md"]}


async def test_answers_of_an_archive_with_a_model_are_checked_once(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    checks = record_calls(monkeypatch, submission, "text_problems")
    monkeypatch.setattr(public_layout, "text_problems", submission.text_problems)
    data = {"model": "openai/gpt-4.1"}
    accepted = await api.post("/v1/submissions/archive", files={"file": ("a.zip", zipped(FILES))}, data=data)
    assert accepted.status_code == 202, accepted.text
    jobs = (await api.get("/v1/jobs")).json()["items"]
    assert [job["model"] for job in jobs] == ["openai/gpt-4.1"] * len(FILES)
    assert len(checks) == len(FILES)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nobody/gpt", "unknown"),
        ("openai/a b", "must be 1 to 200 printable ASCII characters without spaces"),
    ],
)
async def test_archive_with_invalid_model_is_rejected_completely(api: httpx.AsyncClient, model: str, message: str):
    data = {"model": model}
    response = await api.post("/v1/submissions/archive", files={"file": ("a.zip", zipped(FILES))}, data=data)
    [error] = assert_problem(response, 422, "INVALID")["errors"]
    assert error["path"] == "model"
    assert message in error["message"]
    assert await nothing_stored(api)


async def test_archive_with_unknown_task_is_rejected_completely(api: httpx.AsyncClient):
    files = FILES | {"demo/unknown/answer_1.md": "x"}
    read = assert_problem(await api.post("/v1/submissions/archive", files={"file": ("a.zip", zipped(files))}), 404)
    assert [error["path"] for error in read["errors"]] == ["demo/unknown"]
    assert await nothing_stored(api)


@pytest.mark.parametrize(
    "data", [b"", b"no archive at all", zipped({"../../etc/passwd": "x"}), zipped({"readme.md": "x"}), zipped({})]
)
async def test_invalid_archive_is_rejected_completely(api: httpx.AsyncClient, data: bytes):
    assert_problem(await api.post("/v1/submissions/archive", files={"file": ("a.zip", data)}), 422)
    assert await nothing_stored(api)


async def test_archive_with_repeated_idempotency_key_is_stored_once(api: httpx.AsyncClient):
    key = {"Idempotency-Key": "archive"}
    data = zipped(FILES)
    first = await api.post("/v1/submissions/archive", files={"file": ("a.zip", data)}, headers=key)
    again = await api.post("/v1/submissions/archive", files={"file": ("b.zip", data)}, headers=key)
    assert again.json() == first.json()
    assert len((await api.get("/v1/jobs")).json()["items"]) == 3
