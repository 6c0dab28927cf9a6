"""Stand-in DNS server on a UDP port with changing answers, and a resolver that uses it."""

from __future__ import annotations

import asyncio
import secrets
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from types import TracebackType

from cache.errors import HostUnknown, LookupFailed

_NXDOMAIN, _SERVFAIL = 3, 2


class StandInDNS(asyncio.DatagramProtocol):
    """DNS server for A queries. Each name has a list of answers: they are returned in turn, the last one forever,
    with TTL 0.

    An empty answer means NXDOMAIN. ``broken`` names return SERVFAIL, ``silent`` names no reply.
    """

    def __init__(
        self,
        names: Mapping[str, Sequence[Sequence[str]]],
        *,
        broken: frozenset[str] = frozenset(),
        silent: frozenset[str] = frozenset(),
    ) -> None:
        self._names = {name: [list(answer) for answer in answers] for name, answers in names.items()}
        self._broken = broken
        self._silent = silent
        self._transport: asyncio.DatagramTransport | None = None
        self.query_counts: Counter[str] = Counter()
        self.port = 0

    async def __aenter__(self) -> StandInDNS:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = self._transport.get_extra_info("sockname")[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._transport is not None
        self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        name, question = _question(data)
        self.query_counts[name] += 1
        if name in self._silent or self._transport is None:
            return
        answers = self._names.get(name, [[]])
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        code = _SERVFAIL if name in self._broken else 0 if found else _NXDOMAIN
        records = b"".join(
            b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + IPv4Address(address).packed for address in found
        )
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
        self._transport.sendto(head + question + records, addr)


class DNSResolver:
    """``cache.egress.proxy.Resolver`` that queries a DNS server on loopback. An address resolves to itself."""

    def __init__(self, port: int, *, timeout_s: float = 120.0) -> None:
        self._port = port
        self._timeout_s = timeout_s

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        try:
            return [str(IPv4Address(host))]
        except ValueError:
            pass
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[bytes] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Listener(reply), remote_addr=("127.0.0.1", self._port)
        )
        labels = b"".join(bytes([len(part)]) + part for part in host.encode("ascii").split(b".")) + b"\0"
        query = secrets.token_bytes(2) + struct.pack(">HHHHH", 0x0100, 1, 0, 0, 0) + labels + struct.pack(">HH", 1, 1)
        try:
            transport.sendto(query)
            async with asyncio.timeout(self._timeout_s):
                answer = await reply
        except TimeoutError as late:
            raise LookupFailed(host, "no answer") from late
        finally:
            transport.close()
        return _addresses(host, answer)

    def close(self) -> None:
        """Do nothing, because nothing is open."""


class _Listener(asyncio.DatagramProtocol):
    def __init__(self, reply: asyncio.Future[bytes]) -> None:
        self._reply = reply

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        if not self._reply.done():
            self._reply.set_result(data)


def _question(data: bytes) -> tuple[str, bytes]:
    at, parts = 12, []
    while size := data[at]:
        parts.append(data[at + 1 : at + 1 + size].decode("ascii"))
        at += 1 + size
    return ".".join(parts).lower(), data[12 : at + 5]


def _addresses(host: str, answer: bytes) -> list[str]:
    code = answer[3] & 0xF
    if code == _NXDOMAIN:
        raise HostUnknown(host)
    if code:
        raise LookupFailed(host, f"the name server answered with code {code}")
    count = struct.unpack(">H", answer[6:8])[0]
    return [str(IPv4Address(answer[len(answer) - 16 * (count - n) + 12 :][:4])) for n in range(count)]
