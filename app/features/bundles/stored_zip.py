"""Deterministic zip format: the names and contents of the members decide every byte.

Members are not compressed, because compressed bytes depend on the zlib version. Times and owners are constants. Writing
and verifying share the same header functions.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

MAX_MEMBER_BYTES: Final = 0xFFFF_FFFE
"""Maximum size of a member: sizes are 32-bit fields. Only offsets and counts use Zip64."""

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_EXTRA64 = struct.Struct("<2HQ")
_VERSION, _VERSION64 = 20, 45
_UNIX = 3 << 8
_UTF8_NAMES = 0x800
_FIRST_DAY = 0x21  # 1 January 1980, the earliest date of the format
_PLAIN_FILE = (0o100644) << 16
_LIMIT32, _LIMIT16 = 0xFFFF_FFFF, 0xFFFF
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Zip member: offset of its local header, size of its content in bytes, and CRC-32 of its content."""

    name: str
    offset: int
    size: int
    crc: int

    @property
    def content_offset(self) -> int:
        return self.offset + _LOCAL.size + len(self.name.encode())

    @property
    def end(self) -> int:
        return self.content_offset + self.size


def local_header(entry: Entry) -> bytes:
    """Return the local header, which precedes the content of a member."""
    name = entry.name.encode()
    return _LOCAL.pack(
        b"PK\3\4", _VERSION, _UTF8_NAMES, 0, 0, _FIRST_DAY, entry.crc, entry.size, entry.size, len(name), 0
    ) + name  # fmt: skip


def directory(entries: Sequence[Entry]) -> bytes:
    """Return the central directory and the end-of-directory records."""
    directory_offset = entries[-1].end if entries else 0
    written = b"".join(map(_central, entries))
    large = directory_offset >= _LIMIT32 or len(written) >= _LIMIT32 or len(entries) >= _LIMIT16
    tail = b""
    if large:
        count, size = len(entries), len(written)
        tail = _END64.pack(b"PK\6\6", 44, _UNIX | _VERSION64, _VERSION64, 0, 0, count, count, size, directory_offset)
        tail += _LOCATOR64.pack(b"PK\6\7", 0, directory_offset + size, 1)
    count, size = min(len(entries), _LIMIT16), min(len(written), _LIMIT32)
    return written + tail + _END.pack(b"PK\5\6", 0, 0, count, count, size, min(directory_offset, _LIMIT32), 0)


def _central(entry: Entry) -> bytes:
    name = entry.name.encode()
    beyond_32_bits = entry.offset >= _LIMIT32
    extra = _EXTRA64.pack(1, 8, entry.offset) if beyond_32_bits else b""
    version = _VERSION64 if beyond_32_bits else _VERSION
    return _CENTRAL.pack(
        b"PK\1\2", _UNIX | version, version, _UTF8_NAMES, 0, 0, _FIRST_DAY, entry.crc, entry.size, entry.size,
        len(name), len(extra), 0, 0, 0, _PLAIN_FILE, min(entry.offset, _LIMIT32),
    ) + name + extra  # fmt: skip


class StoredZip:
    """Writer for a zip on a seekable file. Call ``finish`` after the last member."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self.entries: list[Entry] = []

    def add(self, name: str, chunks: Iterable[bytes]) -> int:
        """Write one member and return its size in bytes. Raises OSError, or ValueError if it is too large."""
        start = self._offset
        draft = Entry(name=name, offset=start, size=0, crc=0)
        self._file.seek(draft.content_offset)
        size = crc = 0
        for chunk in chunks:
            size += len(chunk)
            if size > MAX_MEMBER_BYTES:
                raise ValueError(f"{name} has more than {MAX_MEMBER_BYTES} bytes")
            crc = zlib.crc32(chunk, crc)
            self._file.write(chunk)
        entry = Entry(name=name, offset=start, size=size, crc=crc)
        self._file.seek(start)
        self._file.write(local_header(entry))
        self._offset = entry.end
        self.entries.append(entry)
        return size

    def finish(self) -> None:
        """Write the central directory. Nothing can be added afterwards."""
        self._file.seek(self._offset)
        self._file.write(directory(self.entries))


def first_differing_byte(file: BinaryIO, entries: Sequence[Entry]) -> int | None:
    """Return the offset of the first byte that ``StoredZip`` would write differently, or None.

    Contents are not compared. ``entries`` are in file order, with the CRC-32 of the content that was read.
    """
    offset = 0
    for entry in entries:
        if entry.offset != offset:
            return offset
        difference = _first_difference(file, offset, local_header(entry))
        if difference is not None:
            return difference
        offset = entry.end
    expected = directory(entries)
    difference = _first_difference(file, offset, expected)
    if difference is not None:
        return difference
    end = offset + len(expected)
    return None if file.seek(0, 2) == end else end


def _first_difference(file: BinaryIO, offset: int, expected: bytes) -> int | None:
    for begin in range(0, len(expected), _CHUNK):
        expected_chunk = expected[begin : begin + _CHUNK]
        file.seek(offset + begin)
        actual_chunk = file.read(len(expected_chunk))
        if actual_chunk != expected_chunk:
            common_length = next(
                (n for n, (a, b) in enumerate(zip(actual_chunk, expected_chunk, strict=False)) if a != b),
                len(actual_chunk),
            )
            return offset + begin + common_length
    return None
