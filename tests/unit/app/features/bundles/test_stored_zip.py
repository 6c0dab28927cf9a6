"""Deterministic zip files, readable by other programs, with more than 4 GiB."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from app.features.bundles.stored_zip import Entry, StoredZip, directory, first_differing_byte, local_header

pytestmark = pytest.mark.slow


def write_zip(members: dict[str, bytes]) -> tuple[io.BytesIO, StoredZip]:
    file = io.BytesIO()
    made = StoredZip(file)
    for name, data in members.items():
        made.add(name, [data])
    made.finish()
    return file, made


def test_zipfile_reads_it():
    members = {"a/x.txt": b"hello", "a/\u00e9.txt": b"", "a/b/c": b"x" * 100_000}
    file, _ = write_zip(members)
    with zipfile.ZipFile(file) as archive:
        assert {info.filename: archive.read(info) for info in archive.infolist()} == members
        assert archive.testzip() is None
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_first_differing_byte_is_found():
    file, made = write_zip({"a/x": b"hello", "a/y": b"you"})
    assert first_differing_byte(file, made.entries) is None
    for at in (0, 10, 40, len(file.getvalue()) - 1):
        data = bytearray(file.getvalue())
        data[at] ^= 1
        found = first_differing_byte(io.BytesIO(bytes(data)), made.entries)
        inside = any(entry.content_offset <= at < entry.end for entry in made.entries)
        assert found == (None if inside else at)
    assert first_differing_byte(io.BytesIO(file.getvalue() + b"x"), made.entries) == len(file.getvalue())
    assert first_differing_byte(io.BytesIO(b"x" + file.getvalue()), made.entries) == 0


def test_members_may_exceed_four_gibibytes():
    entries = [Entry(name=f"a/{n}", offset=n * 2**33, size=3, crc=0) for n in range(3)]
    with zipfile.ZipFile(SparseFile(entries[-1].end, directory(entries))) as archive:
        found = archive.infolist()
    assert [(info.filename, info.header_offset) for info in found] == [(entry.name, entry.offset) for entry in entries]


def test_more_than_65535_members_use_zip64_records():
    entries = [Entry(name=f"a/{n}", offset=n * 100, size=3, crc=0) for n in range(65_535)]
    end = directory(entries)[-98:]  # zip64 end record, its locator, and the end record
    assert end[:4] == b"PK\6\6"
    assert struct.unpack_from("<2Q", end, 24) == (65_535, 65_535)
    assert struct.unpack_from("<Q", end, 48)[0] == entries[-1].end
    assert end[56:60] == b"PK\6\7"
    assert end[76:80] == b"PK\5\6"
    assert directory(entries[:-1])[-98:-94] != b"PK\6\6"


class SparseFile(io.RawIOBase):
    """Large file of which only the end exists."""

    def __init__(self, size: int, tail: bytes) -> None:
        self._size, self._tail, self._at = size, tail, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        end = self._size + len(self._tail)
        self._at = offset if whence == 0 else (self._at if whence == 1 else end) + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        begin = self._at - self._size
        assert begin >= 0, "only the directory is read"
        data = self._tail[begin:] if size < 0 else self._tail[begin : begin + size]
        self._at += len(data)
        return data


def test_local_header_does_not_depend_on_the_position():
    assert local_header(Entry(name="x", offset=0, size=0, crc=0)) == local_header(
        Entry(name="x", offset=99, size=0, crc=0)
    )
