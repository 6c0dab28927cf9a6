"""What one run of a judge file may take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """Bytes, seconds and counts, each for one run of one file. How long it may take is the caller's business.

    ``memory_bytes`` is address space, which is more than what is used of it. ``processes`` are those it may start
    itself; with 0 the system refuses to start any. ``output_bytes`` is what it may print.
    """

    memory_bytes: int = 1024 * MIB
    cpu_s: int = 60
    file_bytes: int = 64 * MIB
    open_files: int = 256
    processes: int = 0
    output_bytes: int = 8 * MIB

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)
