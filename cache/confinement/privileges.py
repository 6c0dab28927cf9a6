"""User, capabilities and process attributes (``prctl``)."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

DEFAULT_UID: Final = 65530
"""User of judge processes if the service runs as root: no account has this number on Debian or with systemd. The
browser has the next one."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_KEEPCAPS: Final = 8
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_RAISE: Final = 2
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_MAX_CAPABILITIES: Final = 64
_CAPABILITY_VERSION_3: Final = 0x20080522
_DAC_READ_SEARCH: Final = 2
_FOR_OTHER_USERS: Final = {"CHOWN": 0, "DAC_OVERRIDE": 1, "KILL": 5, "SETGID": 6, "SETUID": 7}

libc = ctypes.CDLL(None, use_errno=True)
IS_LINUX: Final = platform.system() == "Linux"


def prctl(option: int, *arguments: int | ctypes.c_void_p) -> bool:
    """Call ``prctl``. Return whether it succeeded; False if the system does not have it."""
    if not IS_LINUX:
        return False
    padded = [*arguments, *[0] * (4 - len(arguments))]
    return bool(libc.prctl(option, *[ctypes.c_ulong(each) if isinstance(each, int) else each for each in padded]) == 0)


def exit_with_parent(parent: int) -> None:
    """Have this process killed when ``parent`` (a process id) exits, or exit now if it already has.

    A change of the user cancels this.
    """
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def set_dumpable(*, allowed: bool) -> None:
    """Let other processes of this user trace this process and read its memory and environment in ``/proc``, or not.

    A process with CAP_SYS_PTRACE always can. A new program that this process starts is not affected.
    """
    prctl(_PR_SET_DUMPABLE, int(allowed))


def forbid_new_privileges() -> bool:
    """Let no program that is started from now on gain privileges. Return whether this is in effect."""
    return prctl(_PR_SET_NO_NEW_PRIVS, 1)


def user_change_problem(uid: int) -> str:
    """Return why this process cannot run children as the user ``uid``; empty if it can.

    It needs to be root, with the capabilities to change the user, to give a folder to that user, and to signal and
    clean up after its processes. In a user namespace the number must be mapped.
    """
    if os.geteuid() != 0 or not IS_LINUX:
        return "the service is not root" if IS_LINUX else "this system is not Linux"
    for name in ("uid_map", "gid_map"):
        if not _is_mapped(uid, Path("/proc/self", name).read_text("ascii")):
            return f"this user namespace has no user {uid}" if name == "uid_map" else f"it has no group {uid}"
    missing = [name for name, bit in _FOR_OTHER_USERS.items() if not _effective_capabilities() >> bit & 1]
    return f"the service is root without the capabilities {', '.join(missing)}" if missing else ""


def _is_mapped(number: int, id_map: str) -> bool:
    """Return whether a user or group is mapped, see user_namespaces(7)."""
    ranges = (tuple(map(int, line.split())) for line in id_map.splitlines())
    return any(first <= number < first + length for first, _, length in ranges)


def _effective_capabilities() -> int:
    # Bytes, because the first use of a codec imports it, and judge processes would do that each time.
    for line in Path("/proc/self/status").read_bytes().splitlines():
        if line.startswith(b"CapEff:"):
            return int(line.split()[1], 16)
    return 0


def can_read_everything() -> bool:
    """Return whether this process has CAP_DAC_READ_SEARCH, which ``drop_privileges`` can keep."""
    return bool(_effective_capabilities() >> _DAC_READ_SEARCH & 1)


def drop_privileges(uid: int | None, *, keep_reading: bool = False) -> None:
    """Give up all capabilities, and change to ``uid`` and the group of the same number, without other groups.

    The bounding set is emptied, so that no program gives capabilities back.

    Args:
        uid: User to change to. None: stay the same user.
        keep_reading: Keep CAP_DAC_READ_SEARCH, which ignores permissions for reading. Only for processes whose files
            Landlock limits.

    Raises:
        OSError: this process lacks the capabilities to change the user, or the one to keep.
    """
    kept = 1 << _DAC_READ_SEARCH if keep_reading else 0
    if kept:
        # Must be inheritable before the bounding set is emptied, so that programs started later have it too.
        _set_capabilities(effective=_effective_capabilities(), inheritable=kept)
        prctl(_PR_SET_KEEPCAPS, 1)
    for capability in range(_MAX_CAPABILITIES):
        if not prctl(_PR_CAPBSET_DROP, capability):  # the kernel has no further ones, or CAP_SETPCAP is missing
            break
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _set_capabilities(effective=kept, inheritable=kept)
    if kept:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _DAC_READ_SEARCH)


def _set_capabilities(*, effective: int, inheritable: int) -> None:
    """Set the effective and permitted capabilities, and the inheritable ones. Each is a bit mask."""
    if not IS_LINUX:
        return
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    words = [part >> shift & 0xFFFFFFFF for shift in (0, 32) for part in (effective, effective, inheritable)]
    if libc.capset(header, struct.pack("=6I", *words)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"capabilities cannot be dropped: {os.strerror(error)}")


def are_open_to(uid: int, paths: Iterable[Path]) -> bool:
    """Return whether the user ``uid``, in no group but its own, can reach and read ``paths`` by permission bits.

    Paths that do not exist are ignored, and so are access lists.
    """
    entered: set[Path] = set()
    for path in paths:
        try:
            real = path.resolve(strict=True) if path.is_symlink() else path
            needed = [(real, stat.S_IROTH | (stat.S_IXOTH if real.is_dir() else 0))]
            if real.parent not in entered:
                needed += [(parent, stat.S_IXOTH) for parent in real.resolve().parents]
                entered.add(real.parent)
            if not all(_allows(place.stat(), uid, bits) for place, bits in needed):
                return False
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def _allows(status: os.stat_result, uid: int, bits: int) -> bool:
    """Return whether a file allows ``bits`` (of others) to the user."""
    shift = 6 if status.st_uid == uid else 3 if status.st_gid == uid else 0
    return status.st_mode & bits << shift == bits << shift


def make_reachable(path: Path, *, uid: int, gid: int) -> list[Path]:
    """Let a user reach ``path`` by setting only the search bit on its parent folders. Return those changed.

    With the search bit alone, other users cannot list these folders. The permissions of their files do not change.

    Raises:
        OSError: the permissions of a parent folder cannot be changed.
    """
    changed = []
    for parent in path.resolve().parents:
        status = parent.stat()
        enters_by_group = status.st_gid == gid and status.st_mode & stat.S_IXGRP
        if status.st_uid != uid and not enters_by_group and not status.st_mode & stat.S_IXOTH:
            parent.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
            changed.append(parent)
    return changed


def make_readable(path: Path) -> bool:
    """Let every user read a program that was installed with a strict umask. Return whether it was unreadable.

    Raises:
        OSError: the permissions cannot be changed.
    """
    if path.stat().st_mode & stat.S_IROTH:
        return False
    for each in (path, *path.rglob("*")):
        if not each.is_symlink():
            mode = stat.S_IMODE(each.stat().st_mode)
            each.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
    return True
