"""Deterministic zip files, written by ``zipfile``: the names and contents of the members decide every byte.

Members are not compressed, because compressed bytes depend on the zlib version. Times and owners are constants.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from typing import BinaryIO, Final, cast

MAX_MEMBER_BYTES: Final = 0x7FFF_FFFF
"""Maximum size of a member. ``zipfile`` writes larger members with other headers."""

_UNIX = 3
_PLAIN_FILE = 0o100644 << 16


class StoredZip(zipfile.ZipFile):
    """Writer for a zip on a seekable file. Call ``close`` after the last member."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, "w")

    def __del__(self) -> None:
        """Do not complete the zip of an aborted export, unlike ``ZipFile``: its file is closed and deleted."""

    def add(self, name: str, chunks: Iterable[bytes]) -> int:
        """Write one member and return its size in bytes. Raises OSError, or ValueError if it is too large."""
        info = zipfile.ZipInfo(name)  # dated 1 January 1980, the earliest date of the format
        info.create_system, info.external_attr = _UNIX, _PLAIN_FILE
        size = 0
        with self.open(info, "w") as member:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_MEMBER_BYTES:
                    raise ValueError(f"{name} has more than {MAX_MEMBER_BYTES} bytes")
                member.write(chunk)
        return size


class ZipComparison:
    """Comparison of a zip with the one that ``StoredZip`` writes for the same members.

    Add the members in file order, then call ``finish``.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._sink = _ComparingSink(file)
        self._expected = StoredZip(cast(BinaryIO, self._sink))

    def add(self, name: str, chunks: Iterable[bytes]) -> int:
        """Compare one member and return its size in bytes. Raises like ``StoredZip.add``."""
        size = self._expected.add(name, chunks)
        self._sink.keep_first_difference()
        return size

    def finish(self) -> int | None:
        """Return the offset of the first byte that differs, or None."""
        self._expected.close()
        return self._sink.first_difference()


class _ComparingSink(io.RawIOBase):
    """Writable file that compares each write with ``file``. The last write at an offset counts."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = self._size = 0
        self._differences: dict[int, int] = {}

    def keep_first_difference(self) -> None:
        """Forget all differences but the first. A later write can no longer replace them."""
        first = min(self._differences, default=None)
        self._differences = {} if first is None else {first: self._differences[first]}

    def first_difference(self) -> int | None:
        end = self._file.seek(0, io.SEEK_END)
        differences = [*self._differences.values(), *([self._size] if end != self._size else [])]
        return min(differences, default=None)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._offset = offset + (0, self._offset, self._size)[whence]
        return self._offset

    def write(self, expected: bytes) -> int:  # type: ignore[override]  # zipfile writes bytes
        at = self._offset
        self._file.seek(at)
        actual = self._file.read(len(expected))
        self._differences.pop(at, None)
        if actual != expected:
            pairs = enumerate(zip(actual, expected, strict=False))
            self._differences[at] = at + next((n for n, (a, b) in pairs if a != b), len(actual))
        self._offset = at + len(expected)
        self._size = max(self._size, self._offset)
        return len(expected)
