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
