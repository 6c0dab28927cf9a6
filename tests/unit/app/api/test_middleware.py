"""Middleware around a small application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from fastapi import FastAPI, Request

from app.api.middleware import BodyLimit
from app.api.problems import install_problems


def client(*, max_bytes: int = 100, **limits: Any) -> httpx.AsyncClient:
    app = FastAPI()
    install_problems(app)
    app.add_middleware(BodyLimit, max_bytes=max_bytes, **limits)

    @app.post("/read")
    async def read(request: Request) -> int:
        return len(await request.body())

    @app.post("/ignore")
    async def ignore() -> str:
        return "not read"

    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")


async def chunks(*sizes: int, pause_s: float = 0.0) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size
        await asyncio.sleep(pause_s)


async def test_body_beyond_the_limit_is_rejected_in_any_chunks():
    async with client() as api:
        response = await api.post("/read", content=chunks(*[1] * 101))
    assert (response.status_code, response.json()["code"]) == (413, "TOO_LARGE")
    assert response.headers["connection"] == "close"


async def test_content_length_beyond_the_limit_is_rejected_without_reading():
    async with client() as api:
        for length in ("101", "9" * 30):
            response = await api.post("/ignore", headers={"Content-Length": length})
            assert (response.status_code, response.json()["code"]) == (413, "TOO_LARGE")


async def test_stalled_body_ends_the_request():
    async with client(idle_timeout_s=0.05) as api:
        response = await api.post("/read", content=chunks(10, 10, pause_s=1.0))
    assert (response.status_code, response.headers["content-type"]) == (408, "application/problem+json")


async def test_slow_body_ends_the_request():
    async with client(timeout_s=0.1) as api:
        response = await api.post("/read", content=chunks(*[1] * 50, pause_s=0.02))
    assert (response.status_code, response.json()["code"]) == (408, "TOO_SLOW")


async def test_concurrent_bodies_share_a_limit_and_release_it():
    async with client(max_full_bodies=1) as api:
        is_half_read, gate = asyncio.Event(), asyncio.Event()

        async def halves() -> AsyncIterator[bytes]:
            yield b"x" * 40
            is_half_read.set()
            await gate.wait()
            yield b"x" * 40

        async with asyncio.TaskGroup() as group:
            slow = group.create_task(api.post("/read", content=halves()))
            await is_half_read.wait()
            refused = await api.post("/read", content=b"x" * 70)
            gate.set()
        assert (refused.status_code, refused.json()["code"]) == (503, "BUSY")
        assert refused.headers["retry-after"] == "2"
        assert slow.result().json() == 80
        assert (await api.post("/read", content=b"x" * 100)).json() == 100
