"""Landlock rules: the files that this process can open, whoever owns them. Needs no privileges.

See https://docs.kernel.org/userspace-api/landlock.html. The kernel also denies tracing of processes outside of the
rules' domain (memory, environment and descriptors in ``/proc``), and signals to them from version 6 of the interface.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

from cache.confinement.privileges import IS_LINUX, forbid_new_privileges, libc

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_ALL_BY_VERSION: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_RULE_NET_PORT: Final = 2
_CONNECT_TCP: Final = 1 << 1
LANDLOCK_TCP: Final = 4
"""Version of the interface from which on it limits TCP connections (Linux 6.7)."""
_SCOPED_ABSTRACT_SOCKETS, _SCOPED_SIGNALS = 1, 2
_SCOPES_SINCE: Final = 6


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface; 0 if it has none."""
    if not IS_LINUX:
        return 0
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)))


def restrict_files(
    *,
    readable: Iterable[str],
    writable: Iterable[str],
    listable: Iterable[str] = (),
    tcp_ports: Iterable[int] | None = None,
) -> bool:
    """Deny this process and its future children every file except those in ``readable`` and ``writable``.

    Folders include everything below them; of folders in ``listable`` only the names of files can be read. Paths that do
    not exist are skipped. Files that are open already stay usable. With ``tcp_ports``, TCP connections to other ports
    are denied, too, if the interface has version 4. Return False, without any effect, if the kernel has no Landlock.

    Raises:
        OSError: the kernel supports it but rejected the rules.
    """
    version = landlock_version()
    if version == 0 or not forbid_new_privileges():
        return False
    everything = _ALL_BY_VERSION[min(version, max(_ALL_BY_VERSION))]
    network = _CONNECT_TCP if tcp_ports is not None and version >= LANDLOCK_TCP else 0
    scopes = _SCOPED_ABSTRACT_SOCKETS | _SCOPED_SIGNALS if version >= _SCOPES_SINCE else 0
    # Older kernels accept longer attributes whose additional fields are 0.
    attributes = struct.pack("=QQQ", everything, network, scopes)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for paths, access in ((readable, _READ), (writable, everything), (listable, _READ_DIR)):
            for path in paths:
                _allow(ruleset, path, access & everything)
        for port in tcp_ports or () if network else ():
            _call(_ADD_RULE, ruleset, _RULE_NET_PORT, struct.pack("=QQ", network, port), 0)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= _OF_FILES
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", access, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    result = int(libc.syscall(number, *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
