"""Temporary folders for the data of services, in memory if there is room.

On ext4, the kernel searches linearly for free inodes after many files were deleted. Creating the files of a database
server would take a third of the CPU time of the tests of the service.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_ROOM_BYTES = 2 * 1024**3


def memory_folder() -> Path | None:
    """Return the file system in memory, or None if this machine has none or a small one."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > _ROOM_BYTES else None


def service_folder(prefix: str) -> Path:
    """Create a temporary folder that the account of the database server can enter. The caller removes it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=memory_folder()))
    folder.chmod(0o755)
    return folder
