"""Resolver and raw requests for tests of the egress proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cache.egress.proxy import SystemResolver


class TableResolver:
    """Resolver with a table of answers per name, used one after the other. Numeric addresses go to the system
    resolver."""

    def __init__(self, **names: list[list[str]]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self._system = SystemResolver()
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._names.get(host)
        if answers is None:
            return await self._system.resolve(host, port)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def close(self) -> None:
        self._system.close()


async def status_line(proxy_url: str, first: bytes, host: str) -> bytes:
    """Return the status line of the proxy for a raw request. No client library normalizes the spelling."""
    port = int(proxy_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(first + b"\r\nHost: " + host.encode() + b"\r\n\r\n")
        return await reader.readline()
    finally:
        writer.close()
