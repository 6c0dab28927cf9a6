"""Citation checks over HTTP: jobs with a document, owners, budgets and invalid input."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from app.demo.expected import page_texts
from cache.capture import CaptureOutcome
from tests.fakes.report_documents import FIRST, docx, html, pdf
from tests.integration.app.api.api_calls import assert_problem, wait_for_job
from tests.integration.app.api.conftest import OpenApi
from tests.integration.app.features.check.test_pipeline import MODEL, REPORT, SITE, audit, split
from tests.standin.llm import StandInLLM


async def start(api: httpx.AsyncClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    response = await api.post("/v1/checks", json=body, headers=headers)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == response.json()["url"]
    accepted: dict[str, Any] = response.json()
    return accepted


async def wait_until_paused(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(240):
        while True:
            job: dict[str, Any] = (await api.get(f"/v1/jobs/{job_id}")).json()
            if job["stage"] == "paused" or job["status"] == "failed":
                return job
            await asyncio.sleep(0.02)


async def test_check_is_a_job_whose_result_has_the_document(open_api: OpenApi) -> None:
    async with open_api(pages=page_texts(), model="lexical") as api:
        accepted = await start(api, {"name": "bay.md", "text": REPORT})
        assert (accepted["citations"], accepted["pages"]) == (4, 3)
        job = await wait_for_job(api, accepted["id"])
        assert (job["status"], job["kind"], job["error"]) == ("succeeded", "check", None)
        check = (await api.get(accepted["url"])).json()
        schema = (await api.get("/v1/schema/check.json")).json()
        listed = (await api.get("/v1/checks")).json()["items"]
        results = (await api.get("/v1/results")).json()["items"]

    document = check["document"]
    Draft202012Validator(schema).validate(document)
    assert (document["id"], document["baseline"], document["report"]["name"]) == (accepted["id"], True, "bay.md")
    assert document["report"]["text"] == REPORT
    assert document["statements"][0]["outcome"] == "supported"
    assert [(one["id"], one["name"], "document" in one) for one in listed] == [(accepted["id"], "bay.md", False)]
    precision = document["figures"]["citation_precision_liu2023"]["value"]
    assert listed[0]["score"] == check["score"] == {"value": precision, "low": precision, "high": precision}
    assert results == []  # not the result of an answer


async def test_score_of_a_check_follows_from_its_readable_citations(open_api: OpenApi) -> None:
    cited = f"The Velm Institute was founded in 1931 [1].\n\n[1]: {SITE}/institute/history\n"
    for report, outcome, score in (
        (cited, None, {"value": 1.0, "low": 1.0, "high": 1.0}),
        (cited, CaptureOutcome.LOGIN_WALL, {"value": None, "low": 0.0, "high": 1.0}),
        ("The Velm Institute was founded in 1931.\n", None, None),  # no citations
    ):
        pages = page_texts() if outcome is None else {f"{SITE}/institute/history": outcome}
        async with open_api(pages=pages, model="lexical") as api:
            check = await start(api, {"text": report})
            await wait_for_job(api, check["id"])
            scores = {job["id"]: job["score"] for job in (await api.get("/v1/jobs")).json()["items"]}
        assert scores[check["id"]] == score


async def test_published_page_and_reply_are_reports(open_api: OpenApi) -> None:
    text = "The Velm Institute was founded in 1931."
    annotation: dict[str, Any] = {"type": "url_citation", "start_index": 0, "end_index": len(text), "title": "History"}
    content = [
        {"type": "output_text", "text": text, "annotations": [annotation | {"url": f"{SITE}/institute/history"}]}
    ]
    reply = {"object": "response", "output": [{"type": "message", "role": "assistant", "content": content}]}
    published = {
        "https://reports.example/bay": f"Karrow Bay. {text} [1]\n\nReferences:\n[1] {SITE}/institute/history\n"
    }
    async with open_api(pages={**page_texts(), **published}, model="lexical") as api:
        from_reply = await start(api, {"reply": reply})
        from_page = await start(api, {"url": "https://reports.example/bay"})
        assert from_page["citations"] is None
        documents = []
        for accepted in (from_reply, from_page):
            await wait_for_job(api, accepted["id"])
            documents.append((await api.get(accepted["url"])).json()["document"])

    assert [documents[0]["statements"][0]["outcome"], documents[1]["report"]["url"]] == [
        "supported",
        "https://reports.example/bay",
    ]
    assert "supported" in documents[1]["counts"]


def document(name: str, data: bytes) -> dict[str, Any]:
    return {"document": {"name": name, "content": base64.b64encode(data).decode()}}


async def test_documents_are_reports(open_api: OpenApi) -> None:
    async with open_api(pages={FIRST: "The bridge opened in 1931."}, model="lexical") as api:
        for name, data in (("r.docx", docx()), ("r.html", html()), ("r.pdf", pdf())):
            accepted = await start(api, document(name, data))
            assert (accepted["citations"], accepted["pages"]) == (2, 2)
            await wait_for_job(api, accepted["id"])
            check = (await api.get(accepted["url"])).json()
            assert check["name"] == check["document"]["report"]["name"] == name
            assert check["document"]["statements"][0]["outcome"] == "supported"
        accepted = await start(api, {"text": html().decode()})
        await wait_for_job(api, accepted["id"])
        warnings = (await api.get(accepted["url"])).json()["document"]["warnings"]
        assert any("was read as Markdown" in warning for warning in warnings)


async def test_bad_document_is_refused_and_nothing_is_stored(api: httpx.AsyncClient) -> None:
    before = (await api.get("/v1/jobs")).json()["items"]
    for body, path, message in (
        (document("r.docx", pdf()), "document", "rename it to .pdf"),
        (document("r.pdf", b"%PDF-"), "document", "is damaged"),
        (document("r.md", b""), "document", "is empty"),
        ({"document": {"name": "r.pdf", "content": "abc"}}, "document.content", "is not base64"),
        ({**document("r.md", b"x"), "text": "x"}, "", "exactly one of text, reply, document and url"),
    ):
        response = await api.post("/v1/checks", json=body)
        problem = assert_problem(response, 422, response.json()["code"])
        found = [(error["path"], error["message"]) for error in problem["errors"]]
        assert any(place.startswith(path) and message in text for place, text in found), problem
    assert (await api.get("/v1/jobs")).json()["items"] == before


async def test_budget_stops_the_job_with_the_document_so_far(open_api: OpenApi) -> None:
    async with StandInLLM(extractions={"SplitReply": split, "PageAudit": audit}) as model:
        settings = {"model": MODEL, "openai_base_url": model.base_url, "openai_api_key": "key", "max_llm": 1}
        async with open_api(pages=page_texts(), **settings) as api:
            accepted = await start(api, {"text": REPORT, "budget_usd": 0.0001})
            job = await wait_until_paused(api, accepted["id"])
            document = (await api.get(accepted["url"])).json()["document"]

    assert job["error"]["code"] == "BUDGET"
    assert document["status"] == "stopped"
    assert document["not_judged"]["budget"] > 0
    assert document["budget"] == {"limit_usd": 0.0001, "exhausted": True}


async def test_checks_of_another_owner_do_not_exist(open_api: OpenApi) -> None:
    keys = "ada:submit:key-of-ada-0123456789abc,bob:submit:key-of-bob-0123456789abc"
    async with open_api(workers=0, api_keys=keys) as api:
        ada = {"Authorization": "Bearer key-of-ada-0123456789abc"}
        bob = {"Authorization": "Bearer key-of-bob-0123456789abc"}
        accepted = await start(api, {"text": REPORT}, **ada)
        assert (await api.get(accepted["url"], headers=ada)).status_code == 200
        assert_problem(await api.get(accepted["url"], headers=bob), 404, "NOT_FOUND")
        assert (await api.get("/v1/checks", headers=bob)).json()["items"] == []
        assert (await api.post("/v1/checks", json={"text": REPORT})).status_code == 401


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ""),
        ({"text": REPORT, "url": "https://a.example/"}, ""),
        ({"text": " \n"}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"url": "ftp://a.example/"}, "url"),
        ({"text": REPORT, "budget_usd": -1}, "budget_usd"),
        ({"text": REPORT, "model": "nobody/model"}, "model"),
        ({"text": "Water is wet [1]. " * 10_001 + "\n\nReferences:\n[1] https://a.example/\n"}, "text"),
    ],
)
async def test_invalid_reports_are_rejected(api: httpx.AsyncClient, body: dict[str, Any], path: str) -> None:
    response = await api.post("/v1/checks", json=body)
    assert response.status_code == 422
    assert any(path in error["path"] for error in response.json()["errors"])


async def test_unreadable_published_page_fails_the_job(open_api: OpenApi) -> None:
    async with open_api(pages=page_texts(), model="lexical") as api:
        accepted = await start(api, {"url": "https://reports.example/none"})
        job = await wait_for_job(api, accepted["id"])

    assert (job["status"], job["error"]["code"]) == ("failed", "REPORT_REJECTED")
    assert "The report cannot be read" in job["error"]["detail"]
