"""Restrictions that a process applies to itself before it runs a task file: resource limits and confinement.

For Linux; other systems apply what they support. Runs after ``fork`` and before the task file, when all imports are
done.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from cache.confinement.landlock import restrict_files
from cache.confinement.privileges import (
    are_open_to,
    can_read_everything,
    drop_privileges,
    exit_with_parent,
    prctl,
    set_dumpable,
)
from cache.confinement.seccomp import refuse_system_calls

MIB: Final = 1024 * 1024
MAX_FILES: Final = 5_000
"""Maximum number of files and folders that a task file's process may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """Limits in bytes, seconds and counts for one run. The deadline is the caller's concern.

    ``memory_bytes`` limits address space, which is larger than resident memory. With ``processes`` = 0, the kernel
    refuses to start any. ``output_bytes`` limits stdout and stderr together. ``disk_bytes`` and ``threads`` are
    checked several times a second, so a process can exceed them for a moment before it is killed.
    """

    memory_bytes: int = 1024 * MIB
    cpu_s: int = 60
    file_bytes: int = 64 * MIB
    open_files: int = 256
    disk_bytes: int = 256 * MIB
    threads: int = 256
    processes: int = 0
    output_bytes: int = 8 * MIB

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


_PR_SET_CHILD_SUBREAPER: Final = 36

THREAD_STACK_BYTES: Final = 2 * MIB
_MAX_FILES_OF_FOLDER: Final = 500


def become_subreaper() -> None:
    """Make this process the subreaper of its descendants: it becomes the parent of orphaned ones."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def apply_limits(limits: ScriptLimits) -> None:
    """Apply resource limits to this process permanently."""
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
    faulthandler.enable()


def confine(
    *,
    uid: int | None,
    parent: int,
    judge_files: Sequence[Path],
    writable: str,
    processes: bool,
    network: bool,
) -> None:
    """Give up everything that task files do not need, permanently. Call this after ``apply_limits``.

    The process can read program files (see ``program_files``), the task files and the files beside them. If its user
    cannot, because Python is installed below ``/root`` for example, and Landlock limits it to these files, it keeps the
    capability to read them.

    Args:
        uid: User to change to. None: stay the same user.
        parent: Process with which this one exits.
        judge_files: Task files that it will run.
        writable: Folder in which files may be created, changed and deleted. It is given to the user.
        processes: Whether it may start processes.
        network: Whether it may open sockets.

    Raises:
        OSError: the user cannot be changed.
    """
    if uid is not None:
        os.chown(writable, uid, uid)
    user = os.geteuid() if uid is None else uid
    beside = _files_beside(judge_files)
    may_read = program_is_open_to(user) and are_open_to(user, [*beside, Path(writable)])
    separated = restrict_files(
        readable=[*program_files(), f"/proc/{os.getpid()}", *map(str, beside)],
        writable=[writable, *_DEVICES],
        # A new interpreter lists the folders that it imports from; this one inherited the lists.
        listable={str(path.parent) for path in judge_files} | set(sys.path if processes else ()),
    )
    drop_privileges(uid, keep_reading=separated and not may_read and can_read_everything())
    # Landlock keeps other judge processes from tracing this one, and the supervisor must see its open files.
    set_dumpable(allowed=separated)
    exit_with_parent(parent)
    refuse_system_calls(processes=processes, network=network)


_SYSTEM_FILES: Final = (
    *("/usr", "/lib", "/lib64", "/bin", "/sbin"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/ssl/certs", "/etc/fonts"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/os-release"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/cap_last_cap"),
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@cache
def program_files() -> tuple[str, ...]:
    """Return what Python needs to import further modules, and files of the system without secrets."""
    return (*_SYSTEM_FILES, *import_paths())


@cache
def program_is_open_to(uid: int) -> bool:
    """Return whether a user can read the program files by their permissions (subfolders are not checked)."""
    return are_open_to(uid, map(Path, program_files()))


def import_paths() -> list[str]:
    """Return the files and folders from which Python imports modules.

    Of folders in ``sys.path`` outside of the Python installation only the packages and modules are included, because
    such a folder is often also a working directory, with ``.env`` and data.
    """
    roots = sorted({sys.prefix, sys.base_prefix, sys.exec_prefix})
    entries = [Path(entry) for entry in sys.path if entry]
    outside = [entry for entry in entries if not any(entry.is_relative_to(root) for root in roots)]
    children = [str(each) for entry in outside if entry.is_dir() for each in sorted(entry.iterdir())]
    return [*roots, *(each for each in children if _is_importable(Path(each)))]


def _is_importable(path: Path) -> bool:
    return (path / "__init__.py").is_file() if path.is_dir() else path.suffix in (".py", ".so", ".zip")


def _files_beside(judge_files: Sequence[Path]) -> list[Path]:
    """Return the task files and the data files in their folders: no folders, no hidden files, 500 of each folder."""
    found = dict.fromkeys(judge_files)
    for folder in {path.parent for path in judge_files}:
        with suppress(OSError), os.scandir(folder) as entries:
            beside = [Path(each.path) for each in entries if not each.name.startswith(".") and each.is_file()]
            found.update(dict.fromkeys(beside[:_MAX_FILES_OF_FOLDER]))
    return list(found)


def _raise_oom_score() -> None:
    """Make this process the first candidate of the kernel's out-of-memory killer, before the service."""
    with suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(score, b"1000")
        finally:
            os.close(score)
