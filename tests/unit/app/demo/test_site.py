"""Web server of the demo site on loopback."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from app.demo import DemoPortTaken, DemoSite


async def test_site_is_served_until_the_context_ends():
    async with DemoSite(port=0) as site, httpx.AsyncClient() as client:
        reply = await client.get(f"{site.url}/gauges/kestrel-4")
        assert "2.1 kg" in reply.text
        assert site.egress_allow == site.url.removeprefix("http://")
        address = ("127.0.0.1", site.port)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


async def test_port_in_use_is_reported_with_a_remedy():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(DemoPortTaken, match=f"port {port} .* another program uses it.*Stop the program"):
            await DemoSite(port=port).__aenter__()


async def test_site_that_is_served_already_is_used():
    async with DemoSite(port=0) as first, httpx.AsyncClient() as client:
        async with DemoSite(port=first.port, reuse=True) as second:
            assert second.url == first.url
        assert (await client.get(first.url)).status_code == 200


async def test_other_website_on_the_port_is_not_used():
    async def reply(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1", 0) as other:
        with pytest.raises(DemoPortTaken):
            await DemoSite(port=other.sockets[0].getsockname()[1], reuse=True).__aenter__()
