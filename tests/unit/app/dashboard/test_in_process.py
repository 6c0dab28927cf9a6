"""Transport that calls an application without a socket and streams the response body."""

from __future__ import annotations

import asyncio

import httpx

from app.dashboard.api_access import InProcessTransport


async def test_stream_is_read_incrementally_and_ends_when_closed():
    ended = asyncio.Event()

    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"tick\n", "more_body": True})
                await asyncio.sleep(0.001)
        finally:
            ended.set()

    async with httpx.AsyncClient(transport=InProcessTransport(endless), base_url="http://localhost") as client:
        async with client.stream("GET", "/") as answer:
            lines = answer.aiter_lines()
            assert [await anext(lines) for _ in range(3)] == ["tick"] * 3
            assert not ended.is_set()
        async with asyncio.timeout(240):
            await ended.wait()
