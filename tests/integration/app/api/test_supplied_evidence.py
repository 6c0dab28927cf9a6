"""Pages that agents supply with their answers, over HTTP: policies, counts by provenance, and invalid input."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import httpx
import pytest

from cache.capture import CaptureOutcome
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi
from tests.standin.documents import pdf_with_pages
from tests.unit.cache.sources.test_mhtml import saved

pytestmark = pytest.mark.postgres

URL = "https://example.org/france"
TEXT = f"It is Paris, see [France]({URL})."
PAGE = "Paris is the capital of France, and it has been for a long time."
HTML = f"<!doctype html><title>France</title><h1>France</h1><p>{PAGE}"


async def judged(api: httpx.AsyncClient, policy: str | None, *evidence: dict[str, Any], **more: Any) -> dict[str, Any]:
    answers = [{"name": "answer_1", "text": TEXT, "evidence": list(evidence)}]
    [job_id] = await submit(api, answers=answers, evidence_policy=policy, **more)
    job = await wait_for_job(api, job_id)
    result: dict[str, Any] = (await api.get(f"/v1/results/{job['result_id']}")).json()
    return result


def leaf(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["eval_breakdown"][0]["verification_tree"]["children"][1]
    return found


@pytest.mark.parametrize(
    ("site", "policy", "outcome", "reason", "strict", "counts", "source"),
    [
        ("blocked", None, "not_judged", "capture_blocked", None, (0, 0), "web"),
        ("blocked", "captured", "not_judged", "capture_blocked", None, (0, 0), "web"),
        ("blocked", "fallback", "passed", None, 0.5, (0, 1), "supplied"),
        ("gone", "fallback", "passed", None, 0.5, (0, 1), "supplied"),
        ("gone", "captured", "failed", "source_gone", 0.5, (0, 0), "web"),
        ("same", "fallback", "passed", None, 1.0, (1, 0), "web"),
        ("changed", "fallback", "failed", "refuted", 0.5, (1, 0), "web"),
        ("changed", "supplied", "passed", None, 0.5, (0, 1), "supplied"),
    ],
)
async def test_policy_and_state_of_the_site_decide_what_a_verdict_rests_on(
    open_api: OpenApi, site: str, policy: str | None, outcome: str, reason: str | None, strict: float | None,
    counts: tuple[int, int], source: str,
):  # fmt: skip
    sites: dict[str, dict[str, Any]] = {
        "blocked": {URL: CaptureOutcome.BLOCKED},
        "gone": {},
        "same": {URL: PAGE},
        "changed": {URL: "This page is about the weather of tomorrow, which will be fine in all parts of the country."},
    }
    async with open_api(pages=sites[site]) as api:
        result = await judged(api, policy, {"url": URL, "text": PAGE, "retrieved_at": "2026-11-01T10:00:00Z"})
        verdict = leaf(result)
        assert (verdict["outcome"], verdict["reason"]) == (outcome, reason)
        assert verdict.get("provenance") == ("supplied" if counts[1] else None)
        assert result["score_strict"]["value"] == strict
        assert result["evidence"] == {"policy": policy or "captured", "captured": counts[0], "supplied": counts[1]}
        [page] = result["pages"]
        assert page["source"] == source
        if site != "changed" or policy != "supplied":  # nothing was opened, so there is no capture
            copies = {page["source"]: page["page_id"], page["other_copy"]["source"]: page["other_copy"]["page_id"]}
            assert copies.keys() == {"web", "supplied"}
            shown = (await api.get(f"/v1/pages/{copies['supplied']}")).json()
            assert (shown["owner"], shown["provenance"]["by"]) == ("local", "supplied by the agent")
            assert shown["provenance"]["retrieved_at"] == "2026-11-01T10:00:00+00:00"
        share = page.get("other_copy", {}).get("common_5grams")
        assert share == {"same": 1.0, "changed": None if policy == "supplied" else 0.0}.get(site)


async def test_supplied_page_is_used_for_its_answer_only_and_again_when_that_is_judged_again(open_api: OpenApi):
    async with open_api(pages={URL: CaptureOutcome.BLOCKED}) as api:
        first = await judged(api, "fallback", {"url": URL, "html": HTML, "title": "The agent's France"})
        assert leaf(first)["provenance"] == "supplied"
        [page] = first["pages"]
        assert (await api.get(f"/v1/pages/{page['page_id']}/text")).text.endswith(PAGE)
        assert leaf(await judged(api, "fallback"))["outcome"] == "not_judged"
        rescored = await api.post("/v1/rescores", json={"task_id": "capital"})
        assert rescored.status_code in (200, 202), rescored.text
        jobs = (await api.get("/v1/jobs", params={"task_id": "capital"})).json()["items"]
        outcomes = set()
        for job in jobs:
            ended = await wait_for_job(api, job["id"])
            outcomes.add(leaf((await api.get(f"/v1/results/{ended['result_id']}")).json())["outcome"])
        assert outcomes == {"passed", "not_judged"}


async def test_each_type_of_content_is_read(open_api: OpenApi):
    pdf = base64.b64encode(pdf_with_pages(2)).decode()
    contents = [{"html": HTML}, {"mhtml": saved(HTML.encode()).decode()}, {"pdf": pdf}]
    async with open_api(pages={}) as api:
        texts = []
        for content in contents:
            result = await judged(api, "supplied", {"url": URL, **content})
            texts.append((await api.get(f"/v1/pages/{result['pages'][0]['page_id']}/text")).text)
    assert [PAGE in text for text in texts] == [True, True, False]
    assert "Page number 2 is visible" in texts[2]


BOMB = base64.b64encode(
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 1000000/Kids[2 0 R]>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF"
).decode()


@pytest.mark.parametrize(
    ("evidence", "path", "message"),
    [
        ([{"text": PAGE}], "answers.1.evidence.0.url", "required"),
        ([{"url": "", "text": PAGE}], "answers.1.evidence.0.url", "at least 1 character"),
        ([{"url": "ftp://a.example/", "text": PAGE}], "answers.1.evidence.0.url", "only http and https"),
        ([{"url": URL, "text": PAGE}, {"url": f"{URL}#x", "text": "x"}], "answers.1.evidence.1.url", "already given"),
        ([{"url": URL}], "answers.1.evidence.0.text", "is missing"),
        ([{"url": URL, "text": PAGE, "html": HTML}], "answers.1.evidence.0.text", "beside html"),
        ([{"url": URL, "pdf": "AAAA"}], "answers.1.evidence.0.pdf", "not pdf"),
        ([{"url": URL, "pdf": BOMB}], "answers.1.evidence.0", "damaged"),
        ([{"url": URL, "text": "x" * 2_000_001}], "answers.1.evidence.0", "more than 2000000 characters"),
        ([{"url": f"{URL}/{n}", "text": "x"} for n in range(201)], "answers.1.evidence", "at most 200"),
        ([{"url": URL, "text": PAGE, "screenshot": "x"}], "answers.1.evidence.0.screenshot", "not permitted"),
    ],
)
async def test_invalid_page_is_refused_with_its_field_and_nothing_is_stored(
    api: httpx.AsyncClient, evidence: list[dict[str, Any]], path: str, message: str
):
    good = {"name": "a", "text": TEXT, "evidence": [{"url": URL, "text": PAGE}]}
    body = {"agent": "demo", "task_id": "capital", "answers": [good, {"name": "b", "text": TEXT, "evidence": evidence}]}
    problem = assert_problem(await api.post("/v1/submissions", json=body), 422)
    [error] = [each for each in problem["errors"] if each["path"] == path]
    assert message in error["message"]
    assert (await api.get("/v1/submissions")).json()["items"] == []
    assert (await api.get("/v1/pages")).json()["items"] == []


def archive(**files: bytes | str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


INDEX = json.dumps([{"url": URL, "file": "france.html"}])
FOLDER = "demo/capital/answer_1.evidence"


async def test_archive_has_the_pages_beside_the_answer(open_api: OpenApi):
    files = {"demo/capital/answer_1.md": TEXT, f"{FOLDER}/index.json": INDEX, f"{FOLDER}/france.html": HTML}
    async with open_api(pages={}) as api:
        response = await api.post(
            "/v1/submissions/archive", files={"file": archive(**files)}, data={"evidence_policy": "fallback"}
        )
        assert response.status_code == 202, response.text
        job = await wait_for_job(api, response.json()["submissions"][0]["jobs"][0]["id"])
        result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert (leaf(result)["provenance"], result["evidence"]["supplied"]) == ("supplied", 1)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({f"{FOLDER}/index.json": INDEX}, "'france.html' is not a file beside index.json"),
        ({f"{FOLDER}/index.json": INDEX.replace("france.html", "../answer_1.md")}, "is not a file beside index.json"),
        ({f"{FOLDER}/france.html": HTML}, "index.json: is missing"),
        ({f"{FOLDER}/index.json": "{}"}, "is not a list of pages"),
        ({f"{FOLDER}/index.json": "[]", f"{FOLDER}/france.html": HTML}, "france.html: is not in index.json"),
        ({f"{FOLDER}/../x": "x"}, "leads out of the archive"),
        ({"demo/capital/answer_2.evidence/index.json": "[]"}, "has no answer beside it"),
    ],
)
async def test_invalid_folder_of_an_archive_is_refused(api: httpx.AsyncClient, files: dict[str, str], message: str):
    content = archive(**{"demo/capital/answer_1.md": TEXT, **files})
    problem = assert_problem(await api.post("/v1/submissions/archive", files={"file": content}), 422)
    assert message in "; ".join(f"{each['path']}: {each['message']}" for each in problem["errors"])
    assert (await api.get("/v1/submissions")).json()["items"] == []


async def test_repeated_request_stores_no_page_again(api: httpx.AsyncClient):
    answers = [{"name": "answer_1", "text": TEXT, "evidence": [{"url": URL, "text": PAGE}]}]
    body = {"agent": "demo", "task_id": "capital", "answers": answers}
    files = {"demo/capital/answer_1.md": TEXT, f"{FOLDER}/index.json": INDEX, f"{FOLDER}/france.html": HTML}
    upload = {"file": archive(**files)}

    async def stored() -> int:
        pages = (await api.get("/v1/pages", params={"limit": 100})).json()["items"]
        return sum(page["source"] == "supplied" for page in pages)

    for pages in (1, 1):
        assert (await api.post("/v1/submissions", json=body, headers={"Idempotency-Key": "a"})).status_code == 202
        assert await stored() == pages
    reused = await api.post("/v1/submissions", json=body | {"priority": 1}, headers={"Idempotency-Key": "a"})
    assert (reused.status_code, await stored()) == (422, 1)
    for pages in (2, 2):
        sent = await api.post("/v1/submissions/archive", files=upload, headers={"Idempotency-Key": "b"})
        assert (sent.status_code, await stored()) == (202, pages)


async def test_task_can_forbid_supplied_pages(open_api: OpenApi, judges: Any):
    path = judges / "capital.py"
    path.write_text(path.read_text().replace('version="3"', 'version="3", supplied_evidence="captured"'))
    async with open_api(pages={URL: CaptureOutcome.BLOCKED}) as api:
        result = await judged(api, "supplied", {"url": URL, "text": PAGE})
    assert (leaf(result)["outcome"], result["evidence"]["policy"]) == ("not_judged", "captured")
