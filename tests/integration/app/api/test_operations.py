from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from app.server.application import create_app
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def description() -> Any:
    """OpenAPI description of the service, which takes a second of CPU time."""
    return json.loads(json.dumps(create_app(settings_for_tests(), workers=0).openapi()))


async def test_service_is_alive_and_ready(open_api: OpenApi):
    async with open_api(evaluate=ScriptedEvaluation()) as api:
        assert (await api.get("/healthz")).json() == {"status": "alive", "sandbox": "on"}
        await wait_for_job(api, (await submit(api))[0])
        ready = await api.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert {check["name"] for check in ready.json()["checks"]} == {"database", "judges", "worker"}


async def test_readiness_names_failed_check(open_api: OpenApi, judges):
    (judges / "capital.py").unlink()
    async with open_api(workers=0) as api:
        response = await api.get("/readyz")
    assert response.status_code == 503
    checks = {check["name"]: check for check in response.json()["checks"]}
    assert (checks["judges"]["ok"], checks["database"]["ok"]) == (False, True)
    assert checks["judges"]["detail"] == "0 tasks, 1 broken task files"


async def test_metrics_count_requests_jobs_and_attempts(working_api: httpx.AsyncClient):
    await wait_for_job(working_api, (await submit(working_api))[0])
    await working_api.get("/v1/jobs/job_unknown")
    figures = (await working_api.get("/metrics")).text
    assert 'assay_jobs{status="succeeded"} 1.0' in figures
    assert 'assay_jobs{status="queued"} 0.0' in figures
    assert 'assay_job_attempts_total{outcome="succeeded"} 1.0' in figures
    assert 'assay_http_requests_total{method="POST",route="/v1/submissions",status="202"} 1.0' in figures
    assert 'assay_http_requests_total{method="GET",route="/v1/jobs/{job_id}",status="404"} 1.0' in figures
    assert "job_unknown" not in figures


async def test_pages_are_filtered_and_served_with_their_media_type(open_api: OpenApi):
    cited = "See https://example.org/france and https://example.org/gone."
    async with open_api(pages={"https://example.org/france": "Paris \0 is it."}) as api:
        await wait_for_job(api, (await submit(api, answers=[{"name": "a", "text": cited}]))[0])
        pages = {page["url"]: page for page in (await api.get("/v1/pages")).json()["items"]}
        fine, gone = pages["https://example.org/france"], pages["https://example.org/gone"]
        assert (fine["outcome"], fine["problem"], fine["http_status"]) == ("ok", False, 200)
        assert (gone["outcome"], gone["problem"], gone["gone"]) == ("http_error", True, True)

        async def ids(**query: str) -> list[str]:
            return [page["id"] for page in (await api.get("/v1/pages", params=query)).json()["items"]]

        assert await ids(problem="true") == await ids(problem="http_error") == [gone["id"]]
        assert await ids(problem="false") == [fine["id"]]
        assert sorted(await ids(agent="demo", task_id="capital")) == sorted([fine["id"], gone["id"]])
        assert await ids(agent="other") == []
        assert (await api.get(f"/v1/pages/{fine['id']}")).json() == fine
        shown = await api.get(f"/v1/pages/{fine['id']}/text")
        assert shown.headers["content-type"] == "text/plain; charset=utf-8"
        picture = await api.get(f"/v1/pages/{fine['id']}/screenshot")
        assert (picture.headers["content-type"], picture.content[:2]) == ("image/jpeg", b"\xff\xd8")
        assert_problem(await api.get(f"/v1/pages/{fine['id']}/screenshot?n=1"), 404)
        assert_problem(await api.get(f"/v1/pages/{fine['id']}/pdf"), 404)
        assert_problem(await api.get(f"/v1/pages/{gone['id']}/text"), 404)
        assert_problem(await api.get("/v1/pages?problem=sometimes"), 422)


PATHS = [
    "submissions/{}",
    "jobs/{}",
    "jobs/{}/events",
    "results/{}",
    "tasks/{}",
    "pages/{}",
    "pages/{}/text",
    "agents/{}/summary",
]


INVALID_IDS = ["job_unknown", "%00", "..%2f..", "x" * 300, "%ed%a0%80", "'; DROP TABLE jobs; --"]


async def test_unknown_ids_return_404(api: httpx.AsyncClient):
    for path in PATHS:
        for invalid_id in INVALID_IDS:
            assert_problem(await api.get("/v1/" + path.format(invalid_id)), 404)


async def test_request_that_says_two_things_is_refused_by_name(api: httpx.AsyncClient):
    keys = {"headers": [("Idempotency-Key", "a"), ("idempotency-key", "b")]}
    requests: tuple[tuple[str, str, dict[str, Any], str], ...] = (
        ("POST", "/v1/submissions", keys, "Idempotency-Key"),
        ("GET", "/v1/jobs", {"headers": [("Authorization", "Bearer a"), ("Authorization", "b")]}, "Authorization"),
        ("GET", "/v1/jobs?limit=1&limit=2", {}, "limit"),
        ("POST", "/v1/submissions", {"content": b'{"answers": [{"name": "a", "na\\u006de": "b"}]}'}, "name"),
        ("POST", "/v1/submissions/archive", {"data": {"model": ["a", "b"]}, "files": {"file": b"zip"}}, "model"),
        ("POST", "/v1/submissions/archive", {"files": [("file", b"zip"), ("file", b"tar")]}, "file"),
    )
    for method, path, options, named in requests:
        if "files" not in options:
            options = {**options, "headers": [("Content-Type", "application/json"), *options.get("headers", ())]}
        problem = assert_problem(await api.request(method, path, **options), 400, "GIVEN_TWICE")
        assert [error["path"] for error in problem["errors"]] == [named]


async def test_openapi_is_valid_and_describes_every_error(api: httpx.AsyncClient, description: Any):
    assert (await api.get("/openapi.json")).json() == description
    # Its own check takes seconds, because its import compiles grammars.
    schema = resources.files("openapi_spec_validator") / "resources/schemas/v3.1/schema.json"
    Draft202012Validator(json.loads(schema.read_text())).validate(description)
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    assert len(operations) >= 20
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert {"list_jobs", "get_job", "create_submission", "cancel_job", "get_health"} <= set(ids)
    assert [one for one in ids if not re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", one)] == ["compare"]
    for operation in operations:
        assert operation["responses"]["4XX"]["content"].keys() == {"application/problem+json"}
        assert "422" not in operation["responses"]
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_every_operation_has_valid_examples(description: Any):
    examples = list[tuple[Any, Any]]()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            contents = dict(operation.get("requestBody", {}).get("content", {}))
            for code, answer in operation["responses"].items():
                if code.startswith("2"):
                    contents |= answer.get("content", {})
            for parameter in operation.get("parameters", ()):
                examples.append((parameter["schema"], parameter["example"]))
            texts = {media: part for media, part in contents.items() if media.startswith("text/") or "json" in media}
            assert [media for media, part in texts.items() if "example" not in part] == [], (method, path)
            examples += [(part.get("schema", {}), part["example"]) for media, part in texts.items() if "json" in media]
    assert len(examples) >= 100
    validate_values(description, *examples)


def validate_values(description: Any, *pairs: tuple[Any, Any]) -> None:
    """Validate pairs of schema and value; references of the schemas point into the description."""
    schemas, values = zip(*pairs, strict=True)
    Draft202012Validator({"prefixItems": schemas, "components": description["components"]}).validate(values)


async def test_every_operation_rejects_unknown_query_parameters(api: httpx.AsyncClient, description: Any):
    played = 0
    for path, operations in description["paths"].items():
        for method in operations:
            body: dict | None = {} if method in ("post", "put", "patch") else None
            url = path.replace("{", "").replace("}", "")
            response = await api.request(method, url, params={"stauts": "queued"}, json=body)
            read = assert_problem(response, 422, "INVALID")
            assert read["errors"][0]["message"].startswith("is not a query parameter: this operation takes "), path
            assert [error["path"] for error in read["errors"]] == ["stauts"]
            played += 1
    assert played >= 60


async def test_reference_page_describes_every_operation_and_loads_nothing_from_other_hosts(
    api: httpx.AsyncClient, description: Any
):
    page = await api.get("/docs")
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert f'<details id="{operation["operationId"]}">' in page.text
            assert f"<code>{method.upper()} {path}</code>" in page.text
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert [url for url in loaded if not url.startswith(("/", "#"))] == []
    assert "default-src 'none'" in page.headers["content-security-policy"]
