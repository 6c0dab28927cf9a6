"""Attack: a page refers to an address that the machine got after the service had started."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import psutil
import pytest

from cache.egress import proxy as proxy_module
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


async def test_local_address_that_no_interface_lists_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a local route: the connection succeeds, and both of its ends have the same address."""
    monkeypatch.setattr(proxy_module, "_check_addresses", lambda addresses: None)
    received = asyncio.Event()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            received.set()
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with (
        server,
        EgressProxy(ports=frozenset({port}), resolver=TableResolver(me_test=[["127.0.0.1"]])) as proxy,
        proxy.proxy_port() as proxy_port,
    ):
        request = f"CONNECT me.test:{port} HTTP/1.1".encode()
        assert (await status_line(proxy_port.url, request, "me.test")).startswith(b"HTTP/1.1 403")
    assert not received.is_set()
