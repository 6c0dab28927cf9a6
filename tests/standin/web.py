"""Small web server for tests with scripted replies over sockets and a count of requests."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.standin.http import SocketServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request as received."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply. ``delay_s`` is before the head, ``pause_s`` between head and body; ``hang`` never ends."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay_s: float = 0.0
    pause_s: float = 0.0
    hang: bool = False

    @classmethod
    def html(cls, text: str, *, status: int = 200, delay_s: float = 0.0) -> Reply:
        headers = {"Content-Type": "text/html; charset=utf-8"}
        return cls(status=status, headers=headers, body=text.encode(), delay_s=delay_s)

    @classmethod
    def redirect(cls, target: str, *, status: int = 302) -> Reply:
        return cls(status=status, headers={"Location": target})


Answer = Reply | Callable[[Visit], Reply] | Callable[[Visit], Awaitable[Reply]]


class StandInWeb(SocketServer):
    """Server of ``pages`` (path -> answer) on a free port; ``default_answer`` answers all other paths (default: a 404
    with a body).
    """

    def __init__(
        self,
        pages: Mapping[str, Answer] | None = None,
        *,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        default_answer: Answer | None = None,
    ) -> None:
        self.pages: dict[str, Answer] = dict(pages or {})
        self.default_answer: Answer = default_answer or Reply.html("<h1>Not here</h1>", status=404)
        self.hits: Counter[str] = Counter()
        self.visits: list[Visit] = []
        self.connections = 0
        self.host = host
        self._tls = tls

    def url(self, path: str) -> str:
        return f"http://{self.host_port}{path}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        super()._accept(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            visit = await _read_visit(reader)
            self.hits[visit.path] += 1
            self.visits.append(visit)
            answer = self.pages.get(visit.path, self.default_answer)
            if callable(answer):
                made = answer(visit)
                answer = made if isinstance(made, Reply) else await made
            await _send(answer, writer)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()


async def _read_visit(reader: asyncio.StreamReader) -> Visit:
    raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = raw.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if length:
        await reader.readexactly(length)
    return Visit(method=method, target=target, headers=headers)


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(reply.delay_s)
    headers = {"Content-Length": str(len(reply.body)), "Connection": "close", **reply.headers}
    if reply.hang:
        headers["Content-Length"] = str(len(reply.body) + 1000)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode("latin-1"))
    await writer.drain()
    await asyncio.sleep(reply.pause_s)
    writer.write(reply.body)
    await writer.drain()
    if reply.hang:
        await asyncio.Event().wait()
