"""Files with the parts of screenshots, so that a page cache in the public layout is decoded once and not in every run.

The parts are derived data: the folder can be deleted at any time, and processes can share it.
"""

from __future__ import annotations

import hashlib
import json
import stat
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Final

from cache.atomic_files import write_atomic
from cache.page_text.screenshot_parts import ScreenshotLimits, is_showable, screenshot_parts

_ANY_WRITER: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_VERSION: Final = 1
"""Increase it when the same picture gets other parts."""
MAX_FOLDER_BYTES: Final = 512 * 1024 * 1024
"""Maximum size of a folder: the parts of about 1,000 pages."""


class PartFiles:
    """Parts by the content of the screenshot and the limits. A folder that cannot be written is only read."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_FOLDER_BYTES) -> None:
        """Create the store.

        Args:
            folder: Created with its first file, unless the folder that contains it is marked as read-only.
            max_bytes: If the folder becomes larger, its oldest files are deleted.
        """
        self._folder = folder
        self._max_bytes = max_bytes

    def parts(self, screenshot: bytes, limits: ScreenshotLimits) -> tuple[bytes, ...]:
        """Return the parts of a screenshot, prepared in an earlier call if there was one. See ``screenshot_parts``."""
        if is_showable(screenshot, limits.max_width, limits.part_height):
            return (screenshot,)
        key = hashlib.sha256(repr((_VERSION, astuple(limits))).encode())
        key.update(screenshot)
        path = self._folder / f"{key.hexdigest()}.parts"
        stored = _read(path)
        if stored is not None:
            return stored
        parts = screenshot_parts([screenshot], limits)
        with suppress(OSError):
            if self._folder.parent.stat().st_mode & _ANY_WRITER:  # the system does not check the mode for root
                write_atomic(path, _packed(parts))
                self._evict()
        return parts

    def _evict(self) -> None:
        """Delete the oldest files until the folder is not larger than allowed. Other processes may do so as well."""
        files = []
        for path in self._folder.glob("*.parts"):
            with suppress(FileNotFoundError):
                found = path.stat()
                files.append((found.st_mtime_ns, found.st_size, path))
        excess = sum(size for _, size, _ in files) - self._max_bytes
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _packed(parts: tuple[bytes, ...]) -> bytes:
    """Return a header line with the sizes and the hash of the parts, then the parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    header = {"sha256": digest.hexdigest(), "sizes": [len(part) for part in parts]}
    return b"".join([json.dumps(header).encode(), b"\n", *parts])


def _read(path: Path) -> tuple[bytes, ...] | None:
    """Return the parts in a file; None if the file does not exist or is damaged."""
    try:
        line, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(line)
        if hashlib.sha256(body).hexdigest() != header["sha256"]:
            return None
        ends = [sum(header["sizes"][: n + 1]) for n in range(len(header["sizes"]))]
        return tuple(body[end - size : end] for size, end in zip(header["sizes"], ends, strict=True))
    except (OSError, ValueError, KeyError, TypeError):
        return None
