from __future__ import annotations

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem, submission_body
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

KEY, OTHER = "key-of-the-first-kind", "key-of-the-second-kind"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_configured_keys_reject_requests_without_valid_key(open_api: OpenApi):
    async with open_api(workers=0, api_keys=f"{KEY},{OTHER}") as api:
        for headers in ({}, bearer(""), bearer(KEY[:-1]), {"Authorization": f"Basic {KEY}"}):
            response = await api.get("/v1/jobs", headers=headers)
            assert_problem(response, 401, "UNAUTHORIZED")
            assert response.headers["www-authenticate"] == "Bearer"
            assert_problem(await api.post("/v1/submissions", json=submission_body(), headers=headers), 401)
            assert_problem(await api.get("/metrics", headers=headers), 401)
            assert (await api.get("/healthz", headers=headers)).status_code == 200


async def test_other_hosts_and_foreign_origins_are_rejected_without_keys(api: httpx.AsyncClient):
    for host in ("evil.example", "127.0.0.1.evil.example:8000", "", "[::", "localhost@evil.example"):
        assert_problem(await api.get("/v1/jobs", headers={"Host": host}), 421, "WRONG_HOST")
    for host in ("LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
        assert (await api.get("/v1/jobs", headers={"Host": host})).status_code == 200
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9999"):
        response = await api.post("/v1/submissions", json=submission_body(), headers={"Origin": origin})
        assert_problem(response, 403, "FOREIGN_ORIGIN")
    assert (await api.get("/v1/jobs")).json()["items"] == []
    own = {"Origin": "http://127.0.0.1:8000"}
    assert (await api.post("/v1/submissions", json=submission_body(), headers=own)).status_code == 202
