"""Request IDs and rate limits in responses and in the log."""

from __future__ import annotations

import re

import httpx
import pytest
import structlog

from app.api import tasks
from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres
NEW_ID = re.compile(r"[0-9a-f]{32}")


async def test_request_id_of_the_client_is_returned_if_it_is_safe(api: httpx.AsyncClient):
    response = await api.get("/v1/jobs/job_unknown", headers={"X-Request-ID": "nightly-7:retry.2"})
    assert response.headers["x-request-id"] == "nightly-7:retry.2"
    assert assert_problem(response, 404)["request_id"] == "nightly-7:retry.2"
    for sent in ("", "a b", "x" * 129, "<script>"):
        response = await api.get("/v1/nothing", headers={"X-Request-ID": sent})
        assert NEW_ID.fullmatch(response.headers["x-request-id"])
        assert assert_problem(response, 404)["request_id"] == response.headers["x-request-id"]


async def test_internal_error_has_request_id_and_security_headers(open_api: OpenApi, monkeypatch: pytest.MonkeyPatch):
    async with open_api(workers=0) as api:
        api._transport.raise_app_exceptions = False  # type: ignore[attr-defined]  # as a server does
        monkeypatch.setattr(tasks, "_task", lambda *_: 1 / 0)
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as events:
            response = await api.get("/v1/tasks", headers={"X-Request-ID": "broken-1"})
    assert assert_problem(response, 500, "INTERNAL")["request_id"] == "broken-1"
    assert response.headers["x-content-type-options"] == "nosniff"
    [failed] = [event for event in events if event["event"] == "request failed"]
    assert (failed["request_id"], failed["error"]) == ("broken-1", "ZeroDivisionError")
