"""Program that confines itself and then becomes the browser.

The browser opens untrusted pages. It gets a user of its own if the service is root, no capabilities, and only the files
that a browser needs: not the data folder, ``.env`` or the home folder of the service's user. In a network namespace of
its own it reaches only the egress proxy. Without one, Landlock limits its TCP connections to the range of temporary
ports, on which the proxy listens, and databases and web servers do not.
"""

from __future__ import annotations

import array  # noqa: F401 - ``socket.send_fds`` imports it, when the files of Python can no longer be read
import os
import platform
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cache.confinement.landlock import restrict_files
from cache.confinement.own_network import PORTS, bound_sockets, enter_own_network
from cache.confinement.privileges import drop_privileges, exit_with_parent, forbid_new_privileges, libc

_READABLE: Final = (
    *("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/etc", "/sys"),
    *("/var/cache/fontconfig", "/var/lib/dbus", "/snap", "/nix/store"),
)
_WRITABLE: Final = ("/dev", "/proc")  # the sandbox of the browser writes the user map of its namespace in /proc
_SLICE_S: Final = 0.02
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
_SCHED_BATCH: Final = 3


def main(arguments: Sequence[str]) -> None:
    """Become the browser.

    ``arguments`` are the user to change to (empty: none), the number of proxy ports in a network namespace of its own
    (0: no namespace), the Unix socket to which they are passed, the process id of the parent, the folders that the
    browser may write to, separated by ``:``, its executable, and its arguments.

    Raises:
        OSError: one of the restrictions cannot be applied.
    """
    uid, ports, receiver, parent, folders, executable, *options = arguments
    own_ports = PORTS[: int(ports)]
    with socket.socket(socket.AF_UNIX) as service:
        if own_ports:
            service.connect(receiver)
        forbid_new_privileges()
        restrict_files(
            readable=[*_READABLE, str(Path(executable).resolve().parent), executable],
            writable=[*_WRITABLE, *folders.split(":")],
            tcp_ports=own_ports or _ports_of_proxy(),
        )
        if uid:
            drop_privileges(int(uid))
        if own_ports:
            enter_own_network()
            bound = bound_sockets(own_ports)
            socket.send_fds(service, [b"ports"], [each.fileno() for each in bound])
    drop_privileges(None)
    exit_with_parent(int(parent))
    use_long_time_slices()
    os.execv(executable, [executable, *options])  # noqa: S606 - the program that the operator chose


def use_long_time_slices() -> None:
    """Give this process and its children longer time slices. They do not preempt other processes when they wake up.

    Pages that load at the same time preempt each other thousands of times per second, which costs some 5 % of the CPU
    time. Their share of it stays the same. This has no effect on systems without this system call.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None and platform.system() == "Linux":
        # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period. See sched_setattr(2).
        attributes = struct.pack("=IIQiIQQQ", 48, _SCHED_BATCH, 0, 0, 0, int(_SLICE_S * 1e9), 0, 0)
        libc.syscall(number, 0, attributes, 0)


def _ports_of_proxy() -> range:
    """Return the ports that the egress proxy may listen on: it lets the kernel choose one per page."""
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split())
    except FileNotFoundError:  # not Linux
        return range(0)
    return range(first, last + 1)
