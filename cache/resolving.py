"""Names to addresses, off the event loop and with its own threads, so that a slow name server starves nobody."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from cache.errors import HostUnknown, LookupFailed

_THREADS = 16


class Resolver(Protocol):
    """Finds all addresses of a host. Raises HostUnknown or LookupFailed."""

    async def resolve(self, host: str, port: int) -> Sequence[str]: ...

    def close(self) -> None: ...


class SystemResolver:
    """The resolver of the operating system."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        # RFC 6761: this top-level domain never exists; asking would only leak the name or fail for want of a network.
        if host == "invalid" or host.endswith(".invalid"):
            raise HostUnknown(host)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, _look_up, host, port)
        except socket.gaierror as failed:
            if failed.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
                raise HostUnknown(host) from failed
            raise LookupFailed(host, failed.strerror or str(failed)) from failed
        except (UnicodeError, OSError) as failed:
            raise LookupFailed(host, str(failed)) from failed
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str | int, ...] | tuple[int, bytes]]]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
