"""Network namespace of a process that reaches nothing but the sockets that another process accepts for it.

The process creates bound TCP sockets in its namespace and passes them on. A socket stays in the namespace in which it
was created, so whoever receives it can accept connections from there without entering it. Nothing else is reachable:
no other address, over TCP or UDP, and no abstract Unix socket. Needs user namespaces, but no privileges.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cache.confinement.privileges import libc, set_dumpable

PORTS: Final = range(20_000, 20_250)
"""Ports of the bound sockets. All ports of a new namespace are free. A message can carry 253 descriptors."""

_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_SIOCSIFFLAGS, _SIOCSIFADDR = 0x8914, 0x8916
_IFF_UP: Final = 1
_RTM_NEWLINK: Final = 16
_REQUEST_ACK, _CREATE = 0x1 | 0x4, 0x400
_IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 3, 18, 1, 2, 1
_IFLA_AF_SPEC, _IFLA_INET6_ADDR_GEN_MODE, _NO_ADDRESS = 26, 8, b"\1"
_NO_LINK: Final = bytes(16)  # struct ifinfomsg
_DOCUMENTATION_ADDRESS: Final = "192.0.2.1"  # RFC 5737


def enter_own_network() -> None:
    """Move this process to a new network namespace. It gets all capabilities there: drop them afterwards.

    Imports nothing, so that it works where the files of Python can no longer be read.

    The namespace has a loopback interface, and a pair of connected interfaces that lead nowhere. Chromium tells pages
    that they are offline if there is no interface but loopback. The pair has no IPv6 addresses: the kernel would add
    them up to two seconds later, and Chromium then fails requests that wait for a connection (``ERR_NETWORK_CHANGED``).

    Raises:
        OSError: the kernel or its settings refuse one of the steps.
    """
    uid, gid = os.geteuid(), os.getegid()
    set_dumpable(allowed=True)  # otherwise its files in /proc belong to root
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"new network namespace: {os.strerror(error)}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path("/proc/self", name).write_bytes(text.encode())
    _add_connected_interfaces(b"page0", b"page1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(_DOCUMENTATION_ADDRESS))
        fcntl.ioctl(control, _SIOCSIFADDR, struct.pack("=16s16s", b"page0", address))
        for interface in (b"lo", b"page0", b"page1"):
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("=16sH14x", interface, _IFF_UP))


def _add_connected_interfaces(first: bytes, second: bytes) -> None:
    """Create a pair of interfaces (veth) without IPv6 addresses, see rtnetlink(7)."""
    peer = _attribute(_VETH_INFO_PEER, _NO_LINK + _attribute(_IFLA_IFNAME, second + b"\0"))
    pair = _attribute(_IFLA_INFO_KIND, b"veth") + _attribute(_IFLA_INFO_DATA, peer)
    no_address = _attribute(socket.AF_INET6, _attribute(_IFLA_INET6_ADDR_GEN_MODE, _NO_ADDRESS))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        if error := _change_interface(kernel, first, _attribute(_IFLA_LINKINFO, pair), _CREATE):
            raise OSError(error, f"pair of network interfaces (veth): {os.strerror(error)}")
        for interface in (first, second):  # fails if the kernel has no IPv6
            _change_interface(kernel, interface, _attribute(_IFLA_AF_SPEC, no_address))


def _change_interface(kernel: socket.socket, name: bytes, attributes: bytes, flags: int = 0) -> int:
    """Change or create a network interface. Return the error number, or 0."""
    body = _NO_LINK + _attribute(_IFLA_IFNAME, name + b"\0") + attributes
    kernel.send(struct.pack("=IHHII", 16 + len(body), _RTM_NEWLINK, _REQUEST_ACK | flags, 1, 0) + body)
    [error] = struct.unpack_from("=i", kernel.recv(4096), 16)
    return -int(error)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def bound_sockets(ports: Iterable[int]) -> list[socket.socket]:
    """Return sockets that are bound to these loopback ports and do not listen yet: connections are refused.

    Raises:
        OSError: a port is in use.
    """
    bound = []
    for port in ports:
        bound.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        bound[-1].bind(("127.0.0.1", port))
    return bound
