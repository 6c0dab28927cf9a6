"""Resource limits for one run of a judge file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

MIB: Final = 1024 * 1024


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
