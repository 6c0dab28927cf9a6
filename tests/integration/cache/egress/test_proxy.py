"""The egress proxy against live sockets: allowed and blocked destinations, and no connections to internal addresses."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import httpx
import psutil
import pytest
from structlog.testing import capture_logs

from cache.egress.proxy import EgressProxy
from cache.egress.proxy_port import MAX_REFUSALS_PER_HOST, EgressLimits, ProxyPort, RefusalReason
from tests.fakes.egress import TableResolver, status_line
from tests.standin.web import Reply, StandInWeb

# Each entry refers to this machine, its network, or a cloud metadata service. Each is tried with the ports of
# internal servers that listen on IPv4 and IPv6.
_INSIDE_TEXT = """
127.0.0.1 127.0.0.2 127.1 127.0.1 127.255.255.254 0.0.0.0 0 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1
0177.1 017700000001 127.0.0.0x1 127.0.0.01 0x7f.0x0.0x0.0x1 localhost LOCALHOST localhost. 127.0.0.1. 10.0.0.1
10.1.1.1 0xa000001 167772161 172.16.0.1 172.31.9.9 192.168.0.1 192.168.1.254 3232235521 0xc0a80001
169.254.169.254 169.254.1.1 2852039166 0xa9fea9fe 0251.0376.0251.0376 100.64.0.1 100.100.100.200 168.63.129.16
192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 [::1]
[::] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0:127.0.0.1] [::ffff:10.0.0.1]
[::ffff:169.254.169.254] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [64:ff9b:1::1] [100::1] [2001::1] [2001:db8::1]
[2002:7f00:1::] [2002:a00:1::] [fc00::1] [fd00:ec2::254] [fe80::1] [fec0::1] [ff02::1] [3fff::1] loop.test
private.test mixed.test v6.test metadata.test
"""
INSIDE = _INSIDE_TEXT.split()


def _internal_names() -> TableResolver:
    return TableResolver(
        loop_test=[["127.0.0.1"]],
        private_test=[["10.0.0.1"]],
        mixed_test=[["93.184.216.34", "127.0.0.1"]],
        v6_test=[["::1"]],
        metadata_test=[["169.254.169.254"]],
    )


async def test_no_spelling_of_an_internal_address_is_reachable() -> None:
    assert len(INSIDE) >= 60
    async with StandInWeb() as inside, StandInWeb(host="::1") as inside6:
        ports = frozenset({inside.port, inside6.port})
        async with EgressProxy(ports=ports, resolver=_internal_names()) as proxy, proxy.proxy_port() as proxy_port:
            for host in INSIDE:
                for port in ports:
                    place = f"{host}:{port}"
                    for first in (f"GET http://{place}/ HTTP/1.1", f"CONNECT {place} HTTP/1.1"):
                        status = await status_line(proxy_port.url, first.encode(), place)
                        assert status.startswith((b"HTTP/1.1 403", b"HTTP/1.1 502")), (first, status)
            # Blocked by a rule (or not resolvable), not because the connection failed.
            reasons = {refusal.reason for refusal in proxy_port.refusals}
            assert reasons <= {RefusalReason.ADDRESS, RefusalReason.HOST_UNKNOWN, RefusalReason.LOOKUP_FAILED}
            assert len(proxy_port.refusals) == len(INSIDE) * 4
        assert inside.connections == 0
        assert inside6.connections == 0


async def test_dns_rebinding_is_checked_on_every_connection() -> None:
    async with StandInWeb({"/": Reply.html("inside")}) as inside:
        # The first answer is a public address without a server, the second one the address of the internal
        # server.
        names = TableResolver(rebind_test=[["203.0.114.1"], ["127.0.0.1"]])
        limits = EgressLimits(connect_s=0.2)
        async with (
            EgressProxy(limits=limits, ports=frozenset({inside.port}), resolver=names) as proxy,
            proxy.proxy_port() as proxy_port,
        ):
            for _ in range(3):
                response = await _get(proxy_port, f"http://rebind.test:{inside.port}/")
                assert response.status_code in (403, 502)
        assert names.asked == ["rebind.test"] * 3
        assert inside.connections == 0


@pytest.mark.parametrize("spelling", ["::ffff:198.51.99.7", "2606:4700::0:7"])
async def test_public_address_of_this_machine_is_blocked(monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    entries = [
        SimpleNamespace(family=socket.AF_INET, address="198.51.99.7"),
        SimpleNamespace(family=socket.AF_INET6, address="2606:4700::7%eth0"),
        SimpleNamespace(family=psutil.AF_LINK, address="02:42:ac:11:00:02"),
    ]
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth0": entries})
    async with EgressProxy(resolver=TableResolver(me_test=[[spelling]])) as proxy, proxy.proxy_port() as proxy_port:
        assert (await status_line(proxy_port.url, b"CONNECT me.test:443 HTTP/1.1", "me.test")).startswith(
            b"HTTP/1.1 403"
        )
        assert ["of this machine" in refusal.detail for refusal in proxy_port.refusals] == [True]


async def test_non_web_port_is_blocked_before_name_resolution() -> None:
    names = TableResolver()
    async with EgressProxy(resolver=names) as proxy, proxy.proxy_port() as proxy_port:
        assert (await status_line(proxy_port.url, b"CONNECT example.com:25 HTTP/1.1", "example.com")).startswith(
            b"HTTP/1.1 403"
        )
        assert [refusal.reason for refusal in proxy_port.refusals] == [RefusalReason.PORT]
        assert names.asked == []


async def test_invalid_proxy_request_is_rejected() -> None:
    async with EgressProxy() as proxy, proxy.proxy_port() as proxy_port:
        for first in (
            b"GET / HTTP/1.1",
            b"GET file:///etc/passwd HTTP/1.1",
            b"CONNECT example.com:443/x HTTP/1.1",
            b"GET http://user@example.com/ HTTP/1.1",
            b"nonsense",
        ):
            assert (await status_line(proxy_port.url, first, "example.com")).startswith(b"HTTP/1.1 403")


async def test_repeated_requests_to_blocked_host_are_delayed() -> None:
    with capture_logs() as logs:
        async with (
            EgressProxy() as proxy,
            proxy.proxy_port() as proxy_port,
            httpx.AsyncClient(proxy=proxy_port.url) as page,
        ):
            for _ in range(MAX_REFUSALS_PER_HOST):
                assert (await page.get("http://127.0.0.1/again")).status_code == 403
            with pytest.raises(httpx.ReadTimeout):
                await page.get("http://127.0.0.1/again", timeout=httpx.Timeout(120, read=0.2))
            assert (await page.get("http://127.0.0.2/another")).status_code == 403
            async with proxy.proxy_port() as other:
                assert (await _get(other, "http://127.0.0.1/")).status_code == 403
            assert (
                len([refusal for refusal in proxy_port.refusals if refusal.host == "127.0.0.1"])
                == MAX_REFUSALS_PER_HOST
            )
    logged = [(entry["event"], entry["host"]) for entry in logs]
    assert logged == [
        ("request refused", "127.0.0.1"),
        ("too many refused requests", "127.0.0.1"),
        ("request refused", "127.0.0.2"),
        ("request refused", "127.0.0.1"),  # on the other port
    ]


async def test_lane_is_closed_at_its_byte_limit() -> None:
    async with StandInWeb({"/big": Reply(body=b"x" * 3_000_000)}) as site:
        allowed = frozenset({site.host_port})
        async with EgressProxy(allowed) as proxy, proxy.proxy_port(max_bytes=1_000_000) as proxy_port:
            async with httpx.AsyncClient(proxy=proxy_port.url, trust_env=False) as client:
                with pytest.raises(httpx.TransportError):
                    await client.get(site.url("/big"))
                assert (await client.get(site.url("/big"))).status_code == 502
            assert proxy_port.is_exhausted
            assert {refusal.reason for refusal in proxy_port.refusals} == {RefusalReason.BYTES}
            assert proxy_port.bytes_forwarded < 1_200_000


async def test_pipelined_request_is_not_forwarded_to_the_first_server() -> None:
    keeps_open = Reply(headers={"Connection": "keep-alive"}, body=b"first")
    async with (
        StandInWeb({"/": keeps_open}) as site,
        EgressProxy(frozenset({site.host_port})) as proxy,
        proxy.proxy_port() as proxy_port,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy_port.url.rpartition(":")[2]))
        writer.write(f"GET {site.url('/')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        writer.write(b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert b"Connection: close" in answer
        assert b"keep-alive" not in answer
        assert answer.endswith(b"first")
        assert sum(site.hits.values()) == 1


async def _get(port: ProxyPort, url: str) -> httpx.Response:
    async with httpx.AsyncClient(proxy=port.url, trust_env=False) as client:
        return await client.get(url)
