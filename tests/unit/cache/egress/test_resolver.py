"""Name resolution: when a host is known not to exist."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import pytest

from cache.egress.proxy import PUBLIC_HOST, SystemResolver
from cache.errors import HostUnknown, LookupFailed


class Names:
    """Lookup function with a table of known names."""

    def __init__(self, *known: str, fault: int = socket.EAI_NONAME) -> None:
        self.known = set(known)
        self.fault = fault
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[tuple[Any, ...]]:
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(self.fault, "no")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))] * 2


@pytest.mark.parametrize("fault", [socket.EAI_NONAME, socket.EAI_NODATA])
async def test_unknown_host_is_reported_after_one_check_of_the_name_server(fault: int) -> None:
    names = Names(PUBLIC_HOST, fault=fault)
    resolver = SystemResolver(names)
    for _ in range(3):
        with pytest.raises(HostUnknown):
            await resolver.resolve("gone.test", 80)
    assert names.asked.count(PUBLIC_HOST) == 1
    resolver.close()


async def test_name_server_that_cannot_resolve_public_hosts_proves_nothing() -> None:
    at = 0.0
    names = Names("intranet.test")
    resolver = SystemResolver(names, now=lambda: at)
    with pytest.raises(LookupFailed, match=PUBLIC_HOST):
        await resolver.resolve("gone.test", 80)
    assert await resolver.resolve("intranet.test", 80)
    names.known.add(PUBLIC_HOST)  # the connection works again
    at = 60.0
    with pytest.raises(HostUnknown):
        await resolver.resolve("gone.test", 80)
    resolver.close()


async def test_temporary_failure_of_the_name_server_raises_lookup_failed() -> None:
    resolver = SystemResolver(Names(fault=socket.EAI_AGAIN))
    with pytest.raises(LookupFailed):
        await resolver.resolve("a.test", 80)
    resolver.close()


async def test_invalid_top_level_domain_is_not_looked_up() -> None:
    names = Names()
    resolver = SystemResolver(names)
    for host in ("invalid", "no-such-host.invalid"):
        with pytest.raises(HostUnknown):
            await resolver.resolve(host, 80)
    assert names.asked == []
    resolver.close()
