"""IP addresses that captures may not connect to. An explicit table, because ``ipaddress.is_global`` misses some.

Checks addresses only. ``cache.egress.proxy`` resolves a host name when it connects and checks every address.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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
