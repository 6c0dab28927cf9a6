"""Requests from web pages of another scheme, redirects to a foreign host, and guesses of pairing codes."""

from __future__ import annotations

import httpx
import pytest

from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

TLS = {"X-Forwarded-Proto": "https"}  # of no configured proxy: ignored


@pytest.mark.parametrize(
    ("origin", "headers", "allowed"),
    [
        ("http://127.0.0.1:8000", {}, True),
        ("https://127.0.0.1:8000", {}, False),
        ("https://127.0.0.1:8000", TLS, False),
        ("http://127.0.0.1:8000", TLS, True),
    ],
)
async def test_origin_with_another_scheme_is_foreign(
    api: httpx.AsyncClient, origin: str, headers: dict[str, str], allowed: bool
) -> None:
    response = await api.get("/v1/jobs", headers={"Origin": origin, **headers})
    if allowed:
        assert response.status_code == 200
    else:
        assert_problem(response, 403, "FOREIGN_ORIGIN")


@pytest.mark.parametrize("path", ["/v1/jobs/", "/jobs/", "//evil.example/", "/v1//jobs"])
async def test_no_redirect_contains_the_host_of_the_request(open_api: OpenApi, path: str) -> None:
    async with open_api(api_keys="7f3a9c0e52b14d6886aa13f0c2d94e75") as service:
        for host in ("evil.example", "127.0.0.1:8000"):
            response = await service.get(path, headers={"Host": host}, follow_redirects=False)
            assert "evil" not in response.headers.get("location", "")
            assert response.status_code in (303, 404) or response.status_code == 401, response.status_code


async def test_only_wrong_pairing_codes_count_as_guesses(open_api: OpenApi) -> None:
    async with open_api(workers=0) as service:
        for _ in range(6):
            code = (await service.post("/v1/pairings")).json()["code"]
            paired = await service.post("/v1/extension/pair", json={"code": code, "name": "Ada"})
            assert paired.status_code == 201, paired.text
        wrong = [
            (await service.post("/v1/extension/pair", json={"code": f"AAAA-AAA{nth}", "name": "x"})).status_code
            for nth in range(6)
        ]
        assert wrong.count(403) <= 2 and wrong[-1] == 429
