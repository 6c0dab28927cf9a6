"""Sign-in with API keys, and protection of forms and cookies against other sites."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from tests.browser.dashboard.conftest import OpenDashboard, Reader, Served
from tests.fakes.judged import leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

KEY, OTHER = "first-key-4f1c", "second-key-9b2e"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(open_dashboard: OpenDashboard) -> AsyncIterator[Served]:
    async with open_dashboard(api_keys=f"{KEY},{OTHER}") as running:
        yield running


async def sign_in(reader: Reader, key: str) -> None:
    await reader.page.fill("#key", key)
    async with reader.page.expect_navigation():
        await reader.page.click("text=Sign in >> nth=-1")


async def result_of_first_owner(served: Served) -> str:
    text = served.judging.register("mine", lambda: rubric_of(leaf("a"), task_id="rivers"))
    return await served.result("walker", text)


async def test_sign_in_returns_to_the_requested_page(served: Served, reader: Reader):
    result = await result_of_first_owner(served)
    await reader.go(f"/results/{result}?leaf=a")
    assert "/sign-in" in reader.page.url
    assert await reader.violations() == []
    await sign_in(reader, "wrong")
    assert "This API key is not valid" in await reader.text("#wrong")
    await sign_in(reader, KEY)
    assert reader.page.url.endswith(f"/results/{result}?leaf=a")
    [cookie] = await reader.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert KEY not in cookie["value"]
    assert await reader.page.evaluate("document.cookie") == ""
    await reader.page.click('.as-data a:has-text("JSON")')
    await reader.page.wait_for_url("**/v1/results/**")
    assert result in await reader.page.inner_text("body")
    await reader.go("/")
    await reader.page.click("text=Sign out")
    await reader.page.wait_for_url("**/sign-in**")
    await reader.go("/")
    assert "/sign-in" in reader.page.url


@asynccontextmanager
async def signed_in_client(served: Served) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """Yield a client with a session, and its form token."""
    async with httpx.AsyncClient(base_url=served.url, follow_redirects=False) as client:
        token = form_token((await client.get("/sign-in")).text)
        answer = await client.post("/sign-in", data={"key": KEY, "form_token": token})
        assert answer.status_code == 303, answer.text
        yield client, form_token((await client.get("/")).text)


def form_token(html: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', html)
    assert found is not None
    return found[1]


async def test_form_from_another_site_is_rejected(served: Served):
    job = await served.submit("walker", served.judging.register("csrf", lambda: rubric_of(leaf("a"), task_id="rivers")))
    await served.wait_for_job(job)
    async with signed_in_client(served) as (client, token):
        assert (await client.post(f"/jobs/{job}/retry")).status_code == 403
        assert (await client.post(f"/jobs/{job}/retry", data={"form_token": "0" * 64})).status_code == 403
        foreign = {"Origin": "https://evil.example"}
        answer = await client.post(f"/jobs/{job}/retry", data={"form_token": token}, headers=foreign)
        assert answer.status_code == 403
        answer = await client.post(f"/jobs/{job}/retry", data={"form_token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job}")
    await served.wait_for_job(job)


async def test_api_does_not_accept_the_session_cookie(served: Served):
    async with signed_in_client(served) as (client, _):
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/v1/leaderboard")).status_code == 401


async def test_sign_in_does_not_redirect_to_other_sites(served: Served):
    for then in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        async with httpx.AsyncClient(base_url=served.url) as client:
            token = form_token((await client.get("/sign-in")).text)
            answer = await client.post("/sign-in", data={"key": KEY, "form_token": token, "then": then})
        assert answer.headers["location"] == "/"


async def test_partial_pages_streams_and_downloads_require_sign_in(served: Served):
    async with httpx.AsyncClient(base_url=served.url) as client:
        part = await client.get("/", headers={"HX-Request": "true"})
        assert (part.status_code, part.headers["hx-redirect"]) == (401, "/sign-in")
        text = served.judging.register("s", lambda: rubric_of(leaf("a"), task_id="rivers"))
        job = await served.submit("walker", text)
        for path in (f"/jobs/{job}/events", "/json/v1/leaderboard", "/?format=csv", "/review"):
            assert (await client.get(path)).status_code == 303
