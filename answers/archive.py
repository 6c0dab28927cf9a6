"""The members of a zip, tar or tar.gz archive that nobody vouches for.

Everything is counted while it is inflated, never believed from a header: members, bytes of each, bytes
in all, and the ratio of inflated to packed bytes. Links, devices, encrypted and sparse members, and names
that are absolute or climb are refused. Nothing is written where a member's name says so.
"""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, BinaryIO

from answers.errors import ArchiveRefused, Problem, ProblemCode
from answers.submission import MAX_ANSWER_BYTES

MAX_MEMBERS = 5_000
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Of all members together, where they are answers and held in memory."""
MAX_RATIO = 100
RATIO_FROM_BYTES = 64 * 1024
"""Inflated bytes below which the ratio is not looked at: a short text of dashes packs well, too."""

_CHUNK_BYTES = 64 * 1024
_MAX_HEADER_BYTES = 8 * 1024
_SPOOL_BYTES = 8 * 1024 * 1024
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    gzip.BadGzipFile,
    struct.error,
    EOFError,
    UnicodeDecodeError,
    NotImplementedError,  # zipfile's word for a member packed by a method it does not know
    RecursionError,  # tarfile reads the header after a header by calling itself
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """What an archive may hold: bytes of one member, and of all together."""

    member_bytes: int = MAX_ANSWER_BYTES
    total_bytes: int = MAX_TOTAL_BYTES

    @property
    def tar_bytes(self) -> int:
        return self.total_bytes + MAX_MEMBERS * 3 * tarfile.BLOCKSIZE


ANSWERS = ArchiveLimits()


def read_members(file: BinaryIO, limits: ArchiveLimits = ANSWERS) -> Iterator[tuple[str, bytes]]:
    """Name and content of every regular member; ``file`` is seekable and read from its start.

    Raises:
        ArchiveRefused: it is no such archive, is damaged, breaks a limit, or holds something else than files.
    """
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    try:
        if magic[:2] == b"PK":
            yield from _zip_members(file, limits)
        elif magic[:2] == b"\x1f\x8b":
            with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as tar:
                _inflate(file, tar, limits)
                yield from _tar_members(tar, limits)
        else:
            yield from _tar_members(file, limits)
    except _DAMAGED as error:
        raise _refused("", f"is damaged or no zip, tar or tar.gz archive: {error}") from error


def _refused(member: str, message: str, code: ProblemCode = ProblemCode.BAD_ARCHIVE) -> ArchiveRefused:
    return ArchiveRefused([Problem(path=member, message=message, code=code)])


class _Meter:
    """What has been taken out of an archive so far."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._names: set[str] = set()
        self._members = 0
        self._total = 0

    def member(self, name: str) -> str:
        """Count one member and return its name without a leading ``./``."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise _refused("", f"holds more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
        plain = name.removeprefix("./").removesuffix("/")
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise _refused(plain, "has a name that leads out of the archive")
        if plain in self._names:
            raise _refused(plain, "stands twice in the archive", ProblemCode.DUPLICATE)
        self._names.add(plain)
        return plain

    def read(self, name: str, chunks: Iterable[bytes], packed_bytes: int | None = None) -> bytes:
        """The bytes of a member; ``packed_bytes`` is what it takes up in the archive, None where it is not packed."""
        data = bytearray()
        for chunk in chunks:
            data += chunk
            self._total += len(chunk)
            if len(data) > self._limits.member_bytes:
                raise _refused(name, f"has more than {self._limits.member_bytes} bytes", ProblemCode.TOO_LARGE)
            if self._total > self._limits.total_bytes:
                raise _refused("", f"holds more than {self._limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            if packed_bytes is not None:
                _check_ratio(name, len(data), packed_bytes)
        return bytes(data)


def _check_ratio(name: str, inflated_bytes: int, packed_bytes: int) -> None:
    if inflated_bytes > max(RATIO_FROM_BYTES, MAX_RATIO * packed_bytes):
        raise _refused(name, f"inflates to more than {MAX_RATIO} times its size", ProblemCode.TOO_LARGE)


_ZIP_END = struct.Struct("<4s4H2LH")
_ZIP_TAIL_BYTES = _ZIP_END.size + 0xFFFF
_MAX_DIRECTORY_BYTES = MAX_MEMBERS * 512
_ENCRYPTED = 0x1


def _zip_members(file: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[str, bytes]]:
    _check_zip_directory(file)
    meter = _Meter(limits)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = meter.member(info.orig_filename)
            if info.header_offset < 0:  # zipfile would seek there
                raise _refused(name, "is damaged: it begins before the archive does")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() and kind in (0, stat.S_IFDIR):
                continue
            if kind not in (0, stat.S_IFREG):
                raise _refused(name, "is neither a file nor a folder")
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _refused(name, "is encrypted, or packed by another method than deflate")
            with archive.open(info) as content:
                yield name, meter.read(name, iter(lambda: content.read(_CHUNK_BYTES), b""), info.compress_size)


def _check_zip_directory(file: BinaryIO) -> None:
    """Refuse a directory too long to be read: zipfile makes an object of every entry before anyone can count.

    Every place that may be taken for the end record is checked, so it does not matter which one is.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ZIP_TAIL_BYTES - 20))
    tail = file.read()
    file.seek(0)
    if b"PK\x06\x07" in tail:
        raise _refused("", "is a zip64 archive, made for far more than may be sent", ProblemCode.TOO_LARGE)
    at = tail.find(b"PK\x05\x06")
    while at >= 0 and at + _ZIP_END.size <= len(tail):
        directory_bytes = _ZIP_END.unpack_from(tail, at)[5]
        if directory_bytes > _MAX_DIRECTORY_BYTES:
            raise _refused("", f"holds more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
        at = tail.find(b"PK\x05\x06", at + 1)


def _inflate(file: BinaryIO, tar: IO[bytes], limits: ArchiveLimits) -> None:
    """Unpack a gzip stream into ``tar`` within the limits."""
    packed_bytes = file.seek(0, 2)
    file.seek(0)
    inflated_bytes = 0
    # Without a mode it would take that of the file below, and temporary files are open for writing too.
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            inflated_bytes += len(chunk)
            if inflated_bytes > limits.tar_bytes:
                raise _refused("", f"holds more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            _check_ratio("", inflated_bytes, packed_bytes)
            tar.write(chunk)
    tar.seek(0)


def _tar_members(file: IO[bytes], limits: ArchiveLimits) -> Iterator[tuple[str, bytes]]:
    if file.seek(0, 2) > limits.tar_bytes:
        raise _refused("", f"holds more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
    file.seek(0)
    meter = _Meter(limits)
    with tarfile.TarFile(fileobj=_HeaderReader(file)) as archive:
        while (info := archive.next()) is not None:
            # What tarfile keeps of headers that were read would let a small archive fill the memory.
            archive.members.clear()  # type: ignore[attr-defined]  # typeshed leaves it out
            archive.pax_headers = {}
            name = meter.member(info.name)
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                raise _refused(name, "is neither a file nor a folder")
            yield name, meter.read(name, _slice(file, info.offset_data, info.size))
        end = archive.offset
    # tarfile takes a broken header for the end of the archive; what follows would be lost without a word.
    file.seek(end)
    if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise _refused("", "is damaged: a member's header cannot be read")


def _slice(file: IO[bytes], start: int, size: int) -> Iterator[bytes]:
    file.seek(start)
    while size > 0:
        chunk = file.read(min(size, _CHUNK_BYTES))
        if not chunk:
            raise EOFError("a member ends early")
        size -= len(chunk)
        yield chunk


class _HeaderReader(io.RawIOBase):
    """What tarfile sees of the file: it reads headers only, and none of a size that a header says."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise _refused("", "has a header of more than a few kilobytes", ProblemCode.TOO_LARGE)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
