"""Egress proxy: a filtering proxy on loopback for all requests of a capture, from the browser and from httpx.

It resolves a name once, checks all its addresses, and connects to a checked address. Redirects, subresources and DNS
rebinding therefore cannot reach a private network. Each capture has its own port, so that bytes and refusals are
counted per page. TLS is not decrypted, and no content is stored.

The IP addresses that captures may not connect to are an explicit table, because ``ipaddress.is_global`` misses some.
``EgressProxy`` resolves a host name when it connects and checks every address.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from types import TracebackType
from typing import Any, Protocol

import psutil

from cache.egress.proxy_port import (
    MAX_HEAD_BYTES,
    ConnectionRefused,
    EgressLimits,
    ProxyPort,
    Refusal,
    RefusalReason,
    Stream,
)
from cache.errors import HostUnknown, LookupFailed
from cache.image_jobs import DaemonThreadPool
from cache.urls import DEFAULT_PORTS, host_and_port

_DENIED_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud platform"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.52.193.0/24", "relay"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
# In IPv6, only global unicast is allowed, without the ranges for tunnels, documentation and tests.
_GLOBAL_V6 = IPv6Network("2000::/3")
_DENIED_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("2001::/23", "protocol assignments and Teredo"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3ffe::/16", "6bone"),
        ("3fff::/20", "documentation"),
    )
)
_MAPPED_V4 = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


def denial_reason(address: str) -> str | None:
    """Return the reason why a connection to this address is denied, or None if it is allowed.

    >>> denial_reason("127.0.0.1")
    'loopback'
    >>> denial_reason("64:ff9b::7f00:1")
    'loopback'
    >>> denial_reason("93.184.216.34") is None
    True

    Raises:
        ValueError: it is not an IP address.
    """
    parsed = ip_address(address.partition("%")[0])
    return _denial_reason_v4(parsed) if isinstance(parsed, IPv4Address) else _denial_reason_v6(parsed)


def normalize_address(address: str) -> str:
    """Return the normalized form of an address. An IPv6 address that embeds an IPv4 address becomes that IPv4 address.

    >>> normalize_address("::ffff:8.8.8.8"), normalize_address("64:ff9b::808:808")
    ('8.8.8.8', '8.8.8.8')
    >>> normalize_address("2606:4700::00:1%eth0")
    '2606:4700::1'

    Raises:
        ValueError: it is not an IP address.
    """
    parsed = ip_address(address.partition("%")[0])
    return str(_embedded_v4(parsed) or parsed) if isinstance(parsed, IPv6Address) else str(parsed)


def _embedded_v4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, if any."""
    is_embedded = address in _MAPPED_V4 or address in _NAT64
    return IPv4Address(int(address) & 0xFFFFFFFF) if is_embedded else None


def _denial_reason_v4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in _DENIED_V4 if address in network), None)


def _denial_reason_v6(address: IPv6Address) -> str | None:
    embedded = _embedded_v4(address)
    if embedded is not None:
        return _denial_reason_v4(embedded)
    if address not in _GLOBAL_V6:
        return "not global unicast"
    return next((reason for network, reason in _DENIED_V6 if address in network), None)


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


class EgressProxy:
    """Egress proxy as an async context manager."""

    def __init__(
        self,
        allow: frozenset[str] = frozenset(),
        limits: EgressLimits | None = None,
        *,
        ports: frozenset[int] = DEFAULT_PORTS,
        resolver: Resolver | None = None,
    ) -> None:
        """Create the proxy.

        ``allow``: ``host:port`` entries that may be reached although they are private or use a port not in ``ports``.

        Raises:
            ValueError: an entry of ``allow`` is not ``host:port``.
        """
        self._allow = frozenset(parse_host_port(entry) for entry in allow)
        self._limits = limits or EgressLimits()
        self._ports = ports
        self._resolver = resolver or SystemResolver()

    @contextmanager
    def allowing(self, entry: str) -> Iterator[None]:
        """Also allow ``entry`` (``host:port``) during the block.

        Raises:
            ValueError: ``entry`` is not ``host:port``.
        """
        before = self._allow
        self._allow = before | {parse_host_port(entry)}
        try:
            yield
        finally:
            self._allow = before

    @property
    def allowed_ports(self) -> frozenset[int]:
        """Ports of the ``allow`` entries."""
        return frozenset(port for _, port in self._allow)

    async def __aenter__(self) -> EgressProxy:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resolver.close()

    @asynccontextmanager
    async def proxy_port(
        self, *, max_bytes: int | None = None, bound: socket.socket | None = None
    ) -> AsyncIterator[ProxyPort]:
        """Open a proxy port for one capture. All its connections are closed with it.

        ``bound``: bound socket to listen on, for clients in another network namespace. None: a free loopback port.
        """
        proxy_port = ProxyPort(
            self._dial, self._limits, max_bytes=self._limits.port_bytes if max_bytes is None else max_bytes
        )
        await proxy_port.start(bound)
        try:
            yield proxy_port
        finally:
            await proxy_port.aclose()

    async def refusal_of(self, url: str) -> Refusal | None:
        """Return why a request of ``url`` would be refused before a connection is made; None if it would not be."""
        try:
            host, port = host_and_port(url)
            await self._checked_addresses(host, port)
        except ValueError:
            return None
        except ConnectionRefused as refused:
            return Refusal(host=host, port=port, reason=refused.reason, detail=refused.detail)
        return None

    async def _dial(self, host: str, port: int) -> Stream:
        """Connect to a checked address. Raises ConnectionRefused."""
        reader, writer = await self._connect(await self._checked_addresses(host, port), port)
        if not self._is_allowed(host, port) and _is_to_this_machine(writer):
            writer.close()
            raise ConnectionRefused(RefusalReason.ADDRESS, f"{host}: {_OWN_ADDRESS}")
        return reader, writer

    def _is_allowed(self, host: str, port: int) -> bool:
        return (host.lower(), port) in self._allow

    async def _checked_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, all of which may be reached. Raises ConnectionRefused."""
        allowed = self._is_allowed(host, port)
        if not allowed and port not in self._ports:
            raise ConnectionRefused(RefusalReason.PORT, f"port {port} is not allowed")
        addresses = await self._addresses(host, port)
        if not allowed:
            _check_addresses(addresses)
        return addresses

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(self._limits.resolve_s):
                addresses = await self._resolver.resolve(host, port)
        except HostUnknown as unknown:
            raise ConnectionRefused(RefusalReason.HOST_UNKNOWN, str(unknown)) from unknown
        except LookupFailed as failed:
            raise ConnectionRefused(RefusalReason.LOOKUP_FAILED, str(failed)) from failed
        except TimeoutError as late:
            detail = f"DNS lookup of {host} timed out after {self._limits.resolve_s:g} s"
            raise ConnectionRefused(RefusalReason.LOOKUP_FAILED, detail) from late
        if not addresses:
            raise ConnectionRefused(RefusalReason.HOST_UNKNOWN, f"{host} has no address")
        return addresses

    async def _connect(self, addresses: Sequence[str], port: int) -> Stream:
        reason = ""
        try:
            async with asyncio.timeout(self._limits.connect_s):
                for address in addresses:
                    try:
                        return await asyncio.open_connection(address, port, limit=MAX_HEAD_BYTES)
                    except OSError as refused:
                        reason = f"{address}: {refused.strerror or refused}"
        except TimeoutError as late:
            detail = f"connection timed out after {self._limits.connect_s:g} s"
            raise ConnectionRefused(RefusalReason.CONNECT_TIMEOUT, detail) from late
        raise ConnectionRefused(RefusalReason.CONNECT_FAILED, reason)


def parse_host_port(entry: str) -> tuple[str, int]:
    """Parse a ``host:port`` entry of the allow-list into host (lower case, no brackets) and port.

    >>> parse_host_port("LocalHost:8000"), parse_host_port("[::1]:80")
    (('localhost', 8000), ('::1', 80))

    Raises:
        ValueError: it is not ``host:port``.
    """
    try:
        host_port = host_and_port(f"http://{entry.strip()}/")
    except ValueError as odd:
        raise ValueError(f"{entry!r} is not host:port") from odd
    if not entry.strip().endswith(f":{host_port[1]}"):
        raise ValueError(f"{entry!r} is not host:port")
    return host_port


_OWN_ADDRESS = "an address of this machine"


def _check_addresses(addresses: Sequence[str]) -> None:
    """Raise ConnectionRefused if an address is not public, or is one of this machine at this moment (0.1 ms)."""
    own_addresses = _own_addresses()
    for address in addresses:
        denied = denial_reason(address) or (_OWN_ADDRESS if normalize_address(address) in own_addresses else None)
        if denied is not None:
            raise ConnectionRefused(RefusalReason.ADDRESS, f"{address}: {denied}")


def _is_to_this_machine(writer: asyncio.StreamWriter) -> bool:
    """Return whether both ends have one address.

    The kernel connects to an address of the machine from the same address, even if no interface lists it (a local
    route).
    """
    ends = (writer.get_extra_info("sockname"), writer.get_extra_info("peername"))
    own, peer = (None if end is None else normalize_address(end[0]) for end in ends)
    return own is not None and own == peer


def _own_addresses() -> frozenset[str]:
    known = (socket.AF_INET, socket.AF_INET6)
    nets = psutil.net_if_addrs().values()
    return frozenset(normalize_address(entry.address) for net in nets for entry in net if entry.family in known)
