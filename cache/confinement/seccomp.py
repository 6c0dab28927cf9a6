"""seccomp filter: system calls that this process can no longer make. Needs no privileges.

The filter refuses what a process needs to leave its confinement (new processes, sockets, tracing, signals to others,
namespaces, mounts, kernel interfaces), to open files to others, or to use memory beyond its limits. Everything else
stays allowed, so that libraries work. Calls that are newer than this list fail with ENOSYS, after which libraries use
older ones.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
from typing import Final, TypeAlias

from cache.confinement.privileges import IS_LINUX, forbid_new_privileges, prctl

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machines and their AUDIT_ARCH values."""

Calls: TypeAlias = dict[str, tuple[int | None, int | None]]
"""Numbers of system calls by name, on x86_64 and aarch64."""
_PROCESSES: Final[Calls] = {"fork": (57, None), "vfork": (58, None)}
_NETWORK: Final[Calls] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept4": (288, 242),
}
_OTHER_PROCESSES: Final[Calls] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "kcmp": (312, 272),
    "tkill": (200, 130),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_NAMESPACES_AND_MOUNTS: Final[Calls] = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
}
_KERNEL: Final[Calls] = {
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),  # makes other calls, sockets included, that a filter does not see
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
}
_PERMISSIONS: Final[Calls] = {  # of files that the user owns: Landlock does not cover them
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_UNLIMITED_MEMORY: Final[Calls] = {  # memory that RLIMIT_AS does not count, or that remains after the process
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
_FIRST_UNKNOWN_CALL: Final = 454
_CHECKED: Final[Calls] = {  # calls whose arguments decide, see ``_conditions``
    "clone": (56, 220),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "socketpair": (53, 199),
}
_CLONE3: Final = 435
_X32: Final = 0x40000000
_CLONE_THREAD: Final = 0x00010000
_CLONE_NAMESPACES: Final = 0x7E020000
_SOCKET_TYPE_MASK: Final = 0xF

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_Step: TypeAlias = tuple[int, int, str, str]
"""Code, operand, and where to continue if the condition holds or not: "next" or the name of a return value."""


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def refuse_system_calls(*, processes: bool, network: bool) -> bool:
    """Install the filter for this process and its future children. Return whether it is installed.

    ``processes`` and ``network`` allow starting processes (and signals to them), and sockets.
    """
    program = seccomp_program(platform.machine(), os.getpid(), processes=processes, network=network)
    if not IS_LINUX or not program or not forbid_new_privileges():
        return False
    seccomp_filter = _Filter(len(program) // 8, program)
    return prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.cast(ctypes.pointer(seccomp_filter), ctypes.c_void_p))


def seccomp_program(machine: str, pid: int, *, processes: bool, network: bool) -> bytes:
    """Return the filter for the process ``pid``; empty for an unknown machine."""
    if machine not in _ARCHITECTURES:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    refused = _OTHER_PROCESSES | _NAMESPACES_AND_MOUNTS | _KERNEL | _PERMISSIONS | _UNLIMITED_MEMORY
    refused |= {} if processes else _PROCESSES
    refused |= {} if network else _NETWORK
    steps: list[_Step] = [
        (_LOAD, _ARCHITECTURE, "next", "next"),
        (_EQUAL, _ARCHITECTURES[machine], "next", "eperm"),
        (_LOAD, _NUMBER, "next", "next"),
        (_AT_LEAST, _X32, "eperm", "next"),
        (_AT_LEAST, _FIRST_UNKNOWN_CALL, "enosys", "next"),
        # Its flags are in memory, which a filter cannot read. The C library falls back to ``clone``.
        (_EQUAL, _CLONE3, "enosys", "next"),
        *((_EQUAL, number, "eperm", "next") for pair in refused.values() if (number := pair[column]) is not None),
    ]
    for name, checks in _conditions(pid, processes=processes, network=network).items():
        number = _CHECKED[name][column]
        if number is not None:
            steps += [(_EQUAL, number, "next", f"+{len(checks)}"), *checks]
    return _assembled([*steps, (_RETURN, _ALLOW, "next", "next")])


def _conditions(pid: int, *, processes: bool, network: bool) -> dict[str, list[_Step]]:
    """Return checks of arguments by call. The last step of each leads to a return value."""
    load_first: _Step = (_LOAD, _argument(0), "next", "next")
    own: list[_Step] = [load_first, (_EQUAL, pid, "allow", "eperm")]
    own_or_zero: list[_Step] = [load_first, (_EQUAL, 0, "allow", "next"), (_EQUAL, pid, "allow", "eperm")]
    new_process: _Step = (
        (_ANY_BIT, _CLONE_NAMESPACES, "eperm", "allow") if processes else (_ANY_BIT, _CLONE_THREAD, "allow", "eperm")
    )
    conditions = {
        "clone": [load_first, new_process],
        "prctl": [load_first, (_EQUAL, _PR_SET_PDEATHSIG, "eperm", "allow")],  # or it could survive its supervisor
        "prlimit64": own_or_zero,
        "sched_setaffinity": own_or_zero,
    }
    if not processes:
        conditions |= dict.fromkeys(("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"), own)
    if not network:
        # Pairs of stream sockets, which event loops use. They cannot be connected to anything else.
        conditions["socketpair"] = [
            load_first,
            (_EQUAL, socket.AF_UNIX, "next", "eperm"),
            (_LOAD, _argument(1), "next", "next"),
            (_AND, _SOCKET_TYPE_MASK, "next", "next"),
            (_EQUAL, socket.SOCK_STREAM, "allow", "eperm"),
        ]
    return conditions


def _argument(place: int) -> int:
    """Return the offset of the lower half of an argument, on a little-endian machine."""
    return 16 + 8 * place


def _assembled(steps: list[_Step]) -> bytes:
    """Return the program with its return values at the end. "+n" skips n steps."""
    endings = {"allow": _ALLOW, "eperm": _EPERM, "enosys": _ENOSYS}
    places = {name: len(steps) + number for number, name in enumerate(endings)}

    def distance(to: str, index: int) -> int:
        if to == "next":
            return 0
        return int(to) if to.startswith("+") else places[to] - index - 1

    program = b"".join(
        struct.pack("=HBBI", code, distance(yes, index), distance(no, index), operand)
        for index, (code, operand, yes, no) in enumerate(steps)
    )
    return program + b"".join(struct.pack("=HBBI", _RETURN, 0, 0, value) for value in endings.values())
