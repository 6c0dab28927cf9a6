"""DNS lookups in a separate thread pool, so that a slow name server does not block other work."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cache.daemon_threads import DaemonThreadPool
from cache.errors import HostUnknown, LookupFailed

PUBLIC_HOST = "example.com"
"""A name that every name server with access to public DNS resolves."""
_THREADS = 16
_PUBLIC_DNS_TTL_S = 15.0
"""Time after which public DNS is checked again. Short, because until then an outage makes every host unknown."""
_UNKNOWN_HOST = (socket.EAI_NONAME, socket.EAI_NODATA)

LookUp = Callable[[str, int], Sequence[tuple[Any, ...]]]


class Resolver(Protocol):
    """Returns all addresses of a host. Raises HostUnknown or LookupFailed."""

    async def resolve(self, host: str, port: int) -> Sequence[str]: ...

    def close(self) -> None: ...


class SystemResolver:
    """Resolver of the operating system.

    HostUnknown counts against the answer that cites the host. A name server without access to public DNS reports every
    public host as unknown. Therefore HostUnknown is raised only if a well-known public name resolves.
    """

    def __init__(self, look_up: LookUp | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
        """``look_up`` is called in a thread and raises ``socket.gaierror``, like ``socket.getaddrinfo``."""
        self._look_up = look_up or _look_up
        self._now = now
        self._threads = DaemonThreadPool(_THREADS, name="resolve")
        self._has_public_dns = False
        self._check_again_at = float("-inf")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        # RFC 6761: ".invalid" never exists. A query would leak the name, or fail without a network.
        if host == "invalid" or host.endswith(".invalid"):
            raise HostUnknown(host)
        try:
            return await self._query(host, port)
        except socket.gaierror as failed:
            if failed.errno not in _UNKNOWN_HOST:
                raise LookupFailed(host, failed.strerror or str(failed)) from failed
            if not await self._check_public_dns():
                raise LookupFailed(host, f"the name server does not resolve {PUBLIC_HOST} either") from failed
            raise HostUnknown(host) from failed
        except (UnicodeError, OSError) as failed:
            raise LookupFailed(host, str(failed)) from failed

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _query(self, host: str, port: int) -> list[str]:
        addresses = await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, host, port)
        return list(dict.fromkeys(str(entry[4][0]) for entry in addresses))

    async def _check_public_dns(self) -> bool:
        if self._now() >= self._check_again_at:
            try:
                self._has_public_dns = bool(await self._query(PUBLIC_HOST, 80))
            except OSError:
                self._has_public_dns = False
            self._check_again_at = self._now() + _PUBLIC_DNS_TTL_S
        return self._has_public_dns


def _look_up(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
