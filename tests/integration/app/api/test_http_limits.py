"""What arrives on the wire before it is a request: raw sockets against the real web server."""

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

from app.api.http_limits import LimitedHttpProtocol


class Hurried(LimitedHttpProtocol):
    """With less patience, so that a test need not have it."""

    head_s = 0.3
    unread_s = 0.3


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def server(request: pytest.FixtureRequest) -> Iterator[uvicorn.Server]:
    """A server in its own thread, on either event loop: the service uses uvloop if it can."""
    app = FastAPI()

    @app.get("/")
    async def root() -> str:
        return "here"

    @app.get("/long")
    async def long() -> str:
        return "x" * 30_000_000

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        server = uvicorn.Server(uvicorn.Config(app, http=Hurried, ws="none", log_config=None, lifespan="off"))

        def run() -> None:
            with asyncio.Runner(loop_factory=request.param) as runner:
                runner.run(server.serve(sockets=[listener]))

        thread = threading.Thread(target=run)
        thread.start()
        server.config.port = listener.getsockname()[1]
        yield server
        server.should_exit = True
        thread.join()


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    return server.config.port


async def said(port: int, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """All that the server answers until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(120):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause_s)
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
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
    return read


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - the state is in another thread
            await asyncio.sleep(0.01)


GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_a_request_is_answered_however_it_is_cut(port: int):
    for parts in ([GET], [GET[:7], GET[7:]], [bytes([byte]) for byte in GET]):
        assert b'"here"' in await said(port, *parts)


async def test_a_refusal_reaches_a_client_that_is_still_sending(port: int):
    """As a body of 100 MB meets a limit: the connection must not break before the reason was read."""
    body = b"POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\nConnection: close\r\n\r\n"
    answer = await said(port, body, *[b"x" * 1_000_000] * 20)
    assert answer.startswith(b"HTTP/1.1 405 ")


async def test_one_connection_serves_many_requests(port: int):
    keep = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 500 + b"\r\n\r\n"
    assert (await said(port, keep * 300, GET)).count(b'"here"') == 301


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"\0" * 99,
    ],
)
async def test_what_is_not_http_is_told_so_in_the_one_shape(port: int, junk: bytes):
    assert problem(await said(port, junk), 400)["code"] == "NOT_HTTP"


async def test_two_lengths_are_not_http(port: int):
    smuggled = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
    assert problem(await said(port, smuggled), 400)["code"] == "NOT_HTTP"


async def test_a_head_that_never_ends_is_cut_off(port: int):
    endless = [b"GET / HTTP/1.1\r\n", *[b"X-A: " + b"a" * 4000 + b"\r\n"] * 40]
    assert problem(await said(port, *endless), 431)["code"] == "HEAD_TOO_LARGE"
    assert problem(await said(port, b"GET /" + b"a" * 200_000), 431)["code"] == "HEAD_TOO_LARGE"


async def test_a_head_that_comes_too_slowly_is_cut_off(port: int):
    slow = [b"GET / HTTP/1.1\r\n", *[b"X-A: a\r\n"] * 50]
    assert problem(await said(port, *slow, pause_s=0.02), 408)["code"] == "TOO_SLOW"


async def test_a_connection_on_which_nothing_is_asked_is_closed(port: int):
    assert await said(port) == b""


async def test_who_reads_nothing_of_a_long_answer_is_hung_up_on(server: uvicorn.Server):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.config.port, limit=1024)
    writer.write(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
    await until(lambda: bool(server.server_state.connections))
    await until(lambda: not server.server_state.connections)
    received = 0
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        while part := await reader.read(1 << 20):
            received += len(part)
        raise asyncio.IncompleteReadError(b"", None)
    assert received < 30_000_000
    await closed(writer)
