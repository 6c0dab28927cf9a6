from __future__ import annotations

import base64
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.fakes.report_documents import FIRST, docx, html, pdf
from tests.integration.app.api.api_calls import assert_problem, submission_body, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

MIB = 1024 * 1024
DOCUMENTS = (("a.docx", docx()), ("a.html", html()), ("a.pdf", pdf()))


def reply(text: str, *, start: int, end: int) -> dict[str, Any]:
    """Return a reply of OpenAI with one citation."""
    cited = {"type": "url_citation", "start_index": start, "end_index": end, "url": "https://a.example/", "title": "A"}
    content = {"type": "output_text", "text": text, "annotations": [cited]}
    return {"output": [{"type": "message", "role": "assistant", "content": [content]}]}


def document(name: str, data: bytes) -> dict[str, str]:
    return {"name": name, "content": base64.b64encode(data).decode()}


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


async def test_invalid_submission_is_rejected_and_nothing_is_stored(api: httpx.AsyncClient):
    urls = " ".join(f"https://example.org/{n}" for n in range(201))
    cases: tuple[tuple[int, str, dict[str, Any]], ...] = (
        (422, "agent", {"agent": "../etc"}),
        (422, "task_id", {"task_id": None}),
        (422, "answers", {"answers": []}),
        (422, "answers.0", {"answers": [{"name": "answer_1", "text": "x", "reply": {"output": []}}]}),
        (422, "answers.0.document", {"answers": [{"name": "a", "document": document("a.docx", pdf())}]}),
        (422, "answers.0.document.content", {"answers": [{"name": "a", "document": {"name": "a.md", "content": "x"}}]}),
        (
            422,
            "answers.0.reply.output.0.content.0.annotations.0.end_index",
            {"answers": [{"name": "a", "reply": reply("It is Paris.", start=3, end=99)}]},
        ),
        (422, "answers.1.name", {"answers": [{"name": "a", "text": "x"}, {"name": "a.md", "text": "y"}]}),
        (422, "model", {"model": "nobody/gpt"}),
        (422, "priority", {"priority": 7.5}),
        (422, "budget_usd", {"budget_usd": 0}),
        (422, "surprise", {"surprise": True}),
        (404, "task_id", {"task_id": "unknown"}),
        (413, "answers.0.text", {"answers": [{"name": "a", "text": "x" * (MIB + 1)}]}),
        (413, "answers.0.reply", {"answers": [{"name": "a", "reply": reply("x" * (2 * MIB), start=0, end=1)}]}),
        (413, "answers.0.text", {"answers": [{"name": "a", "text": urls}]}),
    )
    for status, path, fields in cases:
        read = assert_problem(await api.post("/v1/submissions", json=submission_body(**fields)), status)
        assert path in [error["path"] for error in read["errors"]]
    malformed = (
        b"",
        b"[]",
        b'{"agent": "\\ud800"}',
        b'{"agent": NaN}',
        b"[" * 100_000,
        b'{"agent": ' + b"1" * 10_000 + b"}",
        json.dumps(submission_body(metadata={"n": 1})).replace("1}", "1e999}").encode(),
        json.dumps(submission_body(metadata={"deep": None})).replace("null", "[" * 500 + "]" * 500).encode(),
    )
    for raw in malformed:
        response = await api.post("/v1/submissions", content=raw, headers={"Content-Type": "application/json"})
        assert assert_problem(response, 422)["errors"]
    assert_problem(await api.post("/v1/submissions", data={"agent": "demo"}), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert await nothing_stored(api)


async def test_document_is_stored_as_markdown(open_api: OpenApi):
    answers = [{"name": f"answer_{n}", "document": document(*given)} for n, given in enumerate(DOCUMENTS, 1)]
    async with open_api(model="lexical") as api:
        estimate = await api.post("/v1/estimates", json=submission_body(answers=answers))
        assert estimate.status_code == 200, estimate.text
        accepted = (await api.post("/v1/submissions", json=submission_body(answers=answers))).json()
        for job in accepted["jobs"]:
            ended = await wait_for_job(api, job["id"])
            answer = (await api.get(f"/v1/results/{ended['result_id']}/answer")).text
            assert FIRST in answer and "The bridge opened in 1931" in answer


async def test_reply_is_stored_as_markdown_with_its_citations_as_links(open_api: OpenApi):
    answers = [{"name": "answer_1", "reply": reply("東京😀 is Paris. So.", start=0, end=13)}]
    async with open_api(workers=1) as api:
        (job_id,) = await submit(api, answers=answers)
        job = await wait_for_job(api, job_id)
        stored = await api.get(f"/v1/results/{job['result_id']}/answer")
    assert stored.text == "東京😀 is Paris ([A](https://a.example/)). So."


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


def zipped(files: Mapping[str, str | bytes]) -> bytes:
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


async def test_archive_creates_one_submission_per_task(api: httpx.AsyncClient):
    for pack in (zipped, tarred):
        key, form = {"Idempotency-Key": pack.__name__}, {"model": "openai/gpt-4.1"}
        packed = pack(FILES)  # once, because a gzip header contains the time
        responses = [
            await api.post("/v1/submissions/archive", files={"file": (name, packed)}, data=form, headers=key)
            for name in ("first", "again")
        ]
        assert responses[0].status_code == 202, responses[0].text
        assert responses[0].json() == responses[1].json()
        submissions = responses[0].json()["submissions"]
        assert {one["task_id"]: [job["answer"] for job in one["jobs"]] for one in submissions} == {
            "capital": ["answer_1.md", "answer_2.md"],
            "broken": ["answer_1.md"],
        }
    jobs = (await api.get("/v1/jobs")).json()["items"]
    assert [job["model"] for job in jobs] == ["openai/gpt-4.1"] * 2 * len(FILES)


async def test_documents_in_an_archive_are_answers(api: httpx.AsyncClient):
    files = {f"demo/capital/answer_{n}{name[1:]}": data for n, (name, data) in enumerate(DOCUMENTS, 1)}
    packed = zipped({**files, "demo/capital/answer_4.md": "Paris"})
    response = await api.post("/v1/submissions/archive", files={"file": ("a.zip", packed)})
    assert response.status_code == 202, response.text
    [submission] = response.json()["submissions"]
    assert [job["answer"] for job in submission["jobs"]] == [f"answer_{n}.md" for n in (1, 2, 3, 4)]


async def test_invalid_archive_is_rejected_completely(api: httpx.AsyncClient):
    cases: tuple[tuple[bytes, str, int, str], ...] = (
        (b"no archive at all", "lexical", 422, "file"),
        (zipped({"../../etc/passwd": "x"}), "lexical", 422, ""),
        (zipped({"readme.md": "x"}), "lexical", 422, ""),
        (zipped(FILES | {"demo/capital/answer_3.pdf": "x"}), "lexical", 422, "demo/capital/answer_3.pdf"),
        (zipped({**FILES, "demo/capital/Answer_1.docx": docx()}), "lexical", 422, ""),
        (zipped({**FILES, "demo/capital/answer_1.docx": docx()}), "lexical", 422, "demo/capital/answer_1.docx"),
        (zipped(FILES | {"demo/capital/answer_3.doc": "x"}), "lexical", 422, "demo/capital/answer_3.doc"),
        (zipped(FILES), "nobody/gpt", 422, "model"),
        (zipped(FILES | {"demo/unknown/answer_1.md": "x"}), "lexical", 404, "demo/unknown"),
    )
    for data, model, status, path in cases:
        response = await api.post("/v1/submissions/archive", files={"file": ("a.zip", data)}, data={"model": model})
        errors = assert_problem(response, status)["errors"]
        assert path in ("", "file") or [error["path"] for error in errors] == [path]
    assert await nothing_stored(api)
