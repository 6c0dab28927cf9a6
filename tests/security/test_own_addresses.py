"""Attack: a page refers to an address that the machine got after the service had started."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import psutil
import pytest

from cache.egress.proxy import EgressProxy
from tests.fakes.egress import TableResolver, status_line

ADDRESS = "198.51.99.7"


async def test_address_added_after_the_start_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    interfaces: dict[str, list[SimpleNamespace]] = {}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: interfaces)
    async with (
        EgressProxy(resolver=TableResolver(me_test=[[ADDRESS]])) as proxy,
        proxy.proxy_port() as proxy_port,
    ):
        interfaces["eth1"] = [SimpleNamespace(family=socket.AF_INET, address=ADDRESS)]
        assert (await status_line(proxy_port.url, b"CONNECT me.test:443 HTTP/1.1", "me.test")).startswith(
            b"HTTP/1.1 403"
        )
        assert ["of this machine" in refusal.detail for refusal in proxy_port.refusals] == [True]
