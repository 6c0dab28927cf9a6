"""A zip whose every byte is determined by the names and contents of its members: nothing packed, no time, no owner.

Packing would give other bytes with another zlib, and times and owners other bytes every time. What decides a byte is
written down here once, and is used both to write and to check.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

MAX_MEMBER_BYTES: Final = 0xFFFF_FFFE
"""A member's own sizes are written in 32 bits; only places and counts grow beyond."""

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_EXTRA64 = struct.Struct("<2HQ")
_VERSION, _VERSION64 = 20, 45
_UNIX = 3 << 8
_UTF8_NAMES = 0x800
_FIRST_DAY = 0x21  # 1 January 1980, the earliest that can be written
_PLAIN_FILE = (0o100644) << 16
_LIMIT32, _LIMIT16 = 0xFFFF_FFFF, 0xFFFF
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One member: where its local header begins, how long it is, and the CRC-32 of its content."""

    name: str
    at: int
    size: int
    crc: int

    @property
    def content_at(self) -> int:
        return self.at + _LOCAL.size + len(self.name.encode())

    @property
    def end(self) -> int:
        return self.content_at + self.size


def local_header(entry: Entry) -> bytes:
    """What stands before the content of a member."""
    name = entry.name.encode()
    return _LOCAL.pack(
        b"PK\3\4", _VERSION, _UTF8_NAMES, 0, 0, _FIRST_DAY, entry.crc, entry.size, entry.size, len(name), 0
    ) + name  # fmt: skip


def directory(entries: Sequence[Entry]) -> bytes:
    """What stands behind all members: the central directory and its end."""
    at = entries[-1].end if entries else 0
    written = b"".join(map(_central, entries))
    large = at >= _LIMIT32 or len(written) >= _LIMIT32 or len(entries) >= _LIMIT16
    tail = b""
    if large:
        count, size = len(entries), len(written)
        tail = _END64.pack(b"PK\6\6", 44, _UNIX | _VERSION64, _VERSION64, 0, 0, count, count, size, at)
        tail += _LOCATOR64.pack(b"PK\6\7", 0, at + size, 1)
    count, size = min(len(entries), _LIMIT16), min(len(written), _LIMIT32)
    return written + tail + _END.pack(b"PK\5\6", 0, 0, count, count, size, min(at, _LIMIT32), 0)


def _central(entry: Entry) -> bytes:
    name = entry.name.encode()
    far = entry.at >= _LIMIT32
    extra = _EXTRA64.pack(1, 8, entry.at) if far else b""
    version = _VERSION64 if far else _VERSION
    return _CENTRAL.pack(
        b"PK\1\2", _UNIX | version, version, _UTF8_NAMES, 0, 0, _FIRST_DAY, entry.crc, entry.size, entry.size,
        len(name), len(extra), 0, 0, 0, _PLAIN_FILE, min(entry.at, _LIMIT32),
    ) + name + extra  # fmt: skip


class StoredZip:
    """Writes members one after the other to a file that can be rewound. Call ``finish`` at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0
        self.entries: list[Entry] = []

    def add(self, name: str, chunks: Iterable[bytes]) -> int:
        """Write one member; returns its size. Raises OSError, or ValueError for one that is too large."""
        start = self._at
        draft = Entry(name=name, at=start, size=0, crc=0)
        self._file.seek(draft.content_at)
        size = crc = 0
        for chunk in chunks:
            size += len(chunk)
            if size > MAX_MEMBER_BYTES:
                raise ValueError(f"{name} has more than {MAX_MEMBER_BYTES} bytes")
            crc = zlib.crc32(chunk, crc)
            self._file.write(chunk)
        entry = Entry(name=name, at=start, size=size, crc=crc)
        self._file.seek(start)
        self._file.write(local_header(entry))
        self._at = entry.end
        self.entries.append(entry)
        return size

    def finish(self) -> None:
        """Write the directory; nothing can be added any more."""
        self._file.seek(self._at)
        self._file.write(directory(self.entries))


def first_wrong_byte(file: BinaryIO, entries: Sequence[Entry]) -> int | None:
    """Where a file ceases to be what ``StoredZip`` writes for these members, their contents left aside; None: nowhere.

    ``entries`` come from what was read: the CRC of the content itself, in the order in which members stand.
    """
    at = 0
    for entry in entries:
        if entry.at != at:
            return at
        wrong = _differs(file, at, local_header(entry))
        if wrong is not None:
            return wrong
        at = entry.end
    expected = directory(entries)
    wrong = _differs(file, at, expected)
    if wrong is not None:
        return wrong
    end = at + len(expected)
    return None if file.seek(0, 2) == end else end


def _differs(file: BinaryIO, at: int, expected: bytes) -> int | None:
    for begin in range(0, len(expected), _CHUNK):
        wanted = expected[begin : begin + _CHUNK]
        file.seek(at + begin)
        found = file.read(len(wanted))
        if found != wanted:
            same = next((n for n, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), len(found))
            return at + begin + same
    return None
