"""Pages of the demo website, as a plain HTTP client receives them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from app.demo.site import demo_app


@pytest.fixture
async def browse() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(demo_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://demo.test") as client:
        yield client


async def test_every_link_of_the_site_works(browse: httpx.AsyncClient):
    seen: set[str] = set()
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        reply = await browse.get(path)
        assert reply.status_code in (200, 303), path
        waiting += [part.split('"')[0] for part in reply.text.split('href="/')[1:]] if "html" in reply.text else []
        waiting = [one if one.startswith("/") else f"/{one}" for one in waiting]
    assert {"/museum/talks", "/files/heron-2-data-sheet.pdf", "/news/autumn-lecture"} <= seen


@pytest.mark.parametrize("path", ["/people/oskar-velm", "/../errors", "/a%00b"])
async def test_missing_page_is_a_404(browse: httpx.AsyncClient, path: str):
    reply = await browse.get(path)
    assert reply.status_code == 404
    assert "There is no page at this address" in reply.text


async def test_members_page_redirects_to_a_login_form_that_rejects_everyone(browse: httpx.AsyncClient):
    reply = await browse.get("/museum/members")
    assert (reply.status_code, reply.headers["location"]) == (303, "/login?next=/museum/members")
    form = await browse.get(reply.headers["location"])
    assert 'type="password"' in form.text
    refused = await browse.post("/login", data={"member": "1", "password": "x"})
    assert (refused.status_code, refused.headers["location"]) == (303, "/login")


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        ("/news/autumn-lecture", "14 November 2025"),
        ("/gauges/kestrel-6", "75 hours"),
        ("/museum/talks", "Noor Castellane"),
    ],
)
async def test_late_and_lazy_facts_are_only_in_scripts(browse: httpx.AsyncClient, path: str, fact: str):
    """Evidence with one of these facts proves that a browser ran the page."""
    text = (await browse.get(path)).text
    markup, _, script = text.partition("<script>")
    assert fact not in markup
    assert fact in script
