"""Transport that calls an application without a socket and streams the response body."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from app.dashboard.api_access import InProcessTransport


async def echo(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 201, "headers": [(b"x-path", scope["path"].encode())]})
    await send({"type": "http.response.body", "body": scope["method"].encode() + b" " + scope["query_string"] + body})


async def test_request_and_response_are_complete():
    async with httpx.AsyncClient(transport=InProcessTransport(echo), base_url="http://localhost") as client:
        answer = await client.post("/a b", params={"x": "1"}, content=b"!")
    assert (answer.status_code, answer.headers["x-path"], answer.text) == (201, "/a b", "POST x=1!")


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


async def test_cancelled_request_cancels_the_application():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(scope, receive, send):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with httpx.AsyncClient(transport=InProcessTransport(slow), base_url="http://localhost") as client:
        request = asyncio.create_task(client.get("/"))
        await begun.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    assert ended.is_set()
