"""Limits of the HTTP protocol layer: raw sockets against the real web server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn
import uvloop
from fastapi import FastAPI

from app.api.middleware import LimitedHttpProtocol


class ShortTimeouts(LimitedHttpProtocol):
    """HTTP protocol for tests that reach a timeout."""

    head_timeout_s = 0.3
    write_timeout_s = 0.3


class LongTimeouts(LimitedHttpProtocol):
    """HTTP protocol for all other tests: the client may be suspended for seconds."""

    head_timeout_s = 240.0
    write_timeout_s = 240.0


LONG_REQUESTED = threading.Event()
"""Set when ``/long`` is requested."""


@contextlib.contextmanager
def running_server(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], protocol: type[LimitedHttpProtocol]
) -> Iterator[uvicorn.Server]:
    """Run a server in a separate thread."""
    app = FastAPI()

    @app.get("/")
    async def root() -> str:
        return "here"

    @app.get("/long")
    async def long() -> str:
        LONG_REQUESTED.set()
        return "x" * 30_000_000

    LONG_REQUESTED.clear()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        server = uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off"))

        def run() -> None:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(server.serve(sockets=[listener]))

        thread = threading.Thread(target=run)
        thread.start()
        server.config.port = listener.getsockname()[1]
        yield server
        server.should_exit = True
        thread.join()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"], scope="module")
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Either event loop. The service uses uvloop if it is available."""
    factory: Callable[[], asyncio.AbstractEventLoop] = request.param
    return factory


@pytest.fixture(scope="module")
def port(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[int]:
    with running_server(loop_factory, LongTimeouts) as server:
        yield server.config.port


@pytest.fixture
def impatient_server(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[uvicorn.Server]:
    with running_server(loop_factory, ShortTimeouts) as server:
        yield server


async def exchange(port: int, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Send the parts and return everything received until the server closes the connection.

    The response is read while sending, because the server resets the connection a while after its response.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = bytearray()

    async def read() -> None:
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(1 << 16):
                received.extend(part)

    async with asyncio.timeout(240):
        reading = asyncio.create_task(read())
        with contextlib.suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause_s)
        await reading
    await close(writer)
    return bytes(received)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def problem(answer: bytes, status: int) -> dict:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer[:300]
    lines = head.decode().lower().splitlines()
    assert "content-type: application/problem+json" in lines
    assert any(line.startswith("content-security-policy:") for line in lines)
    assert "connection: close" in lines
    read: dict = json.loads(body)
    assert read["status"] == status
    assert f"x-request-id: {read['request_id']}" in lines
    return read


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(240):
        while not condition():  # noqa: ASYNC110 - the state is in another thread
            await asyncio.sleep(0.01)


GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_rejection_reaches_client_that_is_still_sending(port: int):
    """For example a 100 MB body that exceeds the limit: the client must be able to read the response."""
    body = b"POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\nConnection: close\r\n\r\n"
    answer = await exchange(port, body, *[b"x" * 1_000_000] * 20)
    assert answer.startswith(b"HTTP/1.1 405 ")


SMUGGLED = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02\x00\x01", b"HELLO\r\n\r\n", SMUGGLED])
async def test_invalid_http_returns_problem(port: int, junk: bytes):
    assert problem(await exchange(port, junk), 400)["code"] == "NOT_HTTP"


async def test_too_large_head_returns_431(port: int):
    endless = [b"GET / HTTP/1.1\r\n", *[b"X-A: " + b"a" * 4000 + b"\r\n"] * 40]
    assert problem(await exchange(port, *endless), 431)["code"] == "HEAD_TOO_LARGE"
    assert problem(await exchange(port, b"GET /" + b"a" * 200_000), 431)["code"] == "HEAD_TOO_LARGE"


async def test_slow_head_returns_408(impatient_server: uvicorn.Server):
    slow = [b"GET / HTTP/1.1\r\n", *[b"X-A: a\r\n"] * 50]
    assert problem(await exchange(impatient_server.config.port, *slow, pause_s=0.02), 408)["code"] == "TOO_SLOW"


async def test_connection_with_unread_response_is_closed(impatient_server: uvicorn.Server):
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient_server.config.port, limit=1024)
    writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_until(LONG_REQUESTED.is_set)
    await wait_until(lambda: not impatient_server.server_state.connections)
    received = 0
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        while part := await reader.read(1 << 20):
            received += len(part)
        raise asyncio.IncompleteReadError(b"", None)
    assert received < 30_000_000
    await close(writer)
