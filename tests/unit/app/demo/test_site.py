"""Web server of the demo site on loopback."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from app.demo.site import DemoPortTaken, DemoSite


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
