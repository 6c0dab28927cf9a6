"""Restrictions that a process applies to itself before it runs a judge file: resource limits and a seccomp filter.

For Linux; other systems apply what they support. Runs after ``fork`` and before the judge file, when all imports are
done.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import platform
import resource
import signal
import struct
import threading
from typing import Final

from judges.isolation.limits import MIB, ScriptLimits

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_SECCOMP: Final = 22
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_CLONE_THREAD: Final = 0x00010000
_CLONE3: Final = 435
_X32: Final = 0x40000000
# By machine: audit architecture, number of clone, and numbers of the older calls that only start processes.
_CALLS: Final = {"x86_64": (0xC000003E, 56, (57, 58)), "aarch64": (0xC00000B7, 220, ())}

THREAD_STACK_BYTES: Final = 2 * MIB


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, *arguments: int | ctypes.c_void_p) -> bool:
    """Call ``prctl``. Return whether it succeeded; False if the system does not have it."""
    if not hasattr(_libc, "prctl"):
        return False
    padded = [*arguments, *[0] * (4 - len(arguments))]
    return bool(_libc.prctl(option, *[ctypes.c_ulong(each) if isinstance(each, int) else each for each in padded]) == 0)


def become_subreaper() -> None:
    """Make this process the subreaper of its descendants: it becomes the parent of orphaned ones."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def exit_with_parent(parent: int) -> None:
    """Have this process killed when ``parent`` (a process id) exits, or exit now if it already has."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def apply_limits(limits: ScriptLimits) -> None:
    """Apply resource limits to this process permanently and forbid it to start processes if ``limits`` say so."""
    bounds = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_CPU: (limits.cpu_s, limits.cpu_s + 1),
        resource.RLIMIT_FSIZE: (limits.file_bytes, limits.file_bytes),
        resource.RLIMIT_NOFILE: (limits.open_files, limits.open_files),
        resource.RLIMIT_AS: (limits.memory_bytes, limits.memory_bytes),
    }
    for resource_, (soft, hard) in bounds.items():
        _, hard_limit = resource.getrlimit(resource_)
        new_limits = (
            (soft, hard) if hard_limit == resource.RLIM_INFINITY else (min(soft, hard_limit), min(hard, hard_limit))
        )
        resource.setrlimit(resource_, new_limits)
    threading.stack_size(THREAD_STACK_BYTES)
    _raise_oom_score()
    if limits.processes == 0:
        forbid_new_processes()
    faulthandler.enable()


def forbid_new_processes() -> bool:
    """Install a seccomp filter that allows threads but no new processes. Return whether it is installed."""
    program = _threads_only_program(platform.machine()) if platform.system() == "Linux" else b""
    if not program or not _prctl(_PR_SET_NO_NEW_PRIVS, 1):
        return False
    seccomp_filter = _Filter(len(program) // 8, program)
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.cast(ctypes.pointer(seccomp_filter), ctypes.c_void_p))


def _threads_only_program(machine: str) -> bytes:
    """Return a seccomp program that rejects every call that starts a process; empty for an unknown machine.

    ``clone3`` takes its flags in memory, which a filter cannot read. It fails with ENOSYS, so the C library falls back
    to ``clone``.
    """
    known = _CALLS.get(machine)
    if known is None:
        return b""
    architecture, clone, older = known
    refused = [(_EQUAL, number) for number in older]
    # (code, operand, jump if true, jump if false). "next" is the next instruction; other names are return values.
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _ARCHITECTURE, "next", "next"),
        (_EQUAL, architecture, "next", "eperm"),
        (_LOAD, _NUMBER, "next", "next"),
        (_AT_LEAST, _X32, "eperm", "next"),
        *((code, number, "eperm", "next") for code, number in refused),
        (_EQUAL, _CLONE3, "enosys", "next"),
        (_EQUAL, clone, "next", "allow"),
        (_LOAD, _FIRST_ARGUMENT, "next", "next"),
        (_ANY_BIT, _CLONE_THREAD, "allow", "eperm"),
    ]
    endings = {"allow": _ALLOW, "eperm": _EPERM, "enosys": _ENOSYS}
    places = {name: len(steps) + number for number, name in enumerate(endings)}
    program = b""
    for index, (code, operand, yes, no) in enumerate(steps):
        jumps = [0 if to == "next" else places[to] - index - 1 for to in (yes, no)]
        program += struct.pack("=HBBI", code, *jumps, operand)
    return program + b"".join(struct.pack("=HBBI", _RETURN, 0, 0, value) for value in endings.values())


def _raise_oom_score() -> None:
    """Make this process the first candidate of the kernel's out-of-memory killer, before the service."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123 - no Path before limits
            score.write("1000")
    except OSError:
        return
