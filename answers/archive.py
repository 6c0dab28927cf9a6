"""Reader for untrusted zip, tar and tar.gz archives.

The limits apply to bytes that were actually decompressed, not to sizes in headers: number of members, bytes per member,
total bytes, and compression ratio. Links, devices, encrypted members, sparse members, absolute names and names with
``..`` are rejected. Nothing is written under a member's name.
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

from answers.errors import InvalidArchive, Problem, ProblemCode
from answers.submission import MAX_ANSWER_BYTES

MAX_MEMBERS = 5_000
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Maximum total size of all members of an archive of answers, which are read into memory."""
MAX_RATIO = 100
RATIO_FROM_BYTES = 64 * 1024
"""Decompressed bytes from which the ratio is checked. A short text of dashes compresses well, too."""

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
    NotImplementedError,  # raised by zipfile for an unknown compression method
    RecursionError,  # tarfile reads chained headers recursively
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Maximum bytes of one member, and of all members of an archive."""

    member_bytes: int = MAX_ANSWER_BYTES
    total_bytes: int = MAX_TOTAL_BYTES

    @property
    def tar_bytes(self) -> int:
        return self.total_bytes + MAX_MEMBERS * 3 * tarfile.BLOCKSIZE


ANSWERS = ArchiveLimits()


def read_members(file: BinaryIO, limits: ArchiveLimits = ANSWERS) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every regular member. ``file`` must be seekable and is read from the start.

    Raises:
        InvalidArchive: The archive has another format, is damaged, exceeds a limit, or contains members that
            are neither files nor folders.
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
        raise _refused("", f"is damaged or not a zip, tar or tar.gz archive: {error}") from error


def _refused(member: str, message: str, code: ProblemCode = ProblemCode.BAD_ARCHIVE) -> InvalidArchive:
    return InvalidArchive([Problem(path=member, message=message, code=code)])


class _Meter:
    """Counter of members and decompressed bytes, which enforces the limits."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._names: set[str] = set()
        self._members = 0
        self._total = 0

    def member(self, name: str) -> str:
        """Count one member. Return its name without a leading ``./``."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise _refused("", f"contains more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
        plain = name.removeprefix("./").removesuffix("/")
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise _refused(plain, "has a name that leads out of the archive")
        if plain in self._names:
            raise _refused(plain, "occurs twice in the archive", ProblemCode.DUPLICATE)
        self._names.add(plain)
        return plain

    def read(self, name: str, chunks: Iterable[bytes], packed_bytes: int | None = None) -> bytes:
        """Return the bytes of a member. ``packed_bytes`` is its compressed size, None if it is not compressed."""
        data = bytearray()
        for chunk in chunks:
            data += chunk
            self._total += len(chunk)
            if len(data) > self._limits.member_bytes:
                raise _refused(name, f"has more than {self._limits.member_bytes} bytes", ProblemCode.TOO_LARGE)
            if self._total > self._limits.total_bytes:
                raise _refused("", f"contains more than {self._limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            if packed_bytes is not None:
                _check_ratio(name, len(data), packed_bytes)
        return bytes(data)


def _check_ratio(name: str, inflated_bytes: int, packed_bytes: int) -> None:
    if inflated_bytes > max(RATIO_FROM_BYTES, MAX_RATIO * packed_bytes):
        raise _refused(name, f"decompresses to more than {MAX_RATIO} times its size", ProblemCode.TOO_LARGE)


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
            if info.header_offset < 0:  # zipfile would seek to this offset
                raise _refused(name, "is damaged: its offset is before the start of the archive")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() and kind in (0, stat.S_IFDIR):
                continue
            if kind not in (0, stat.S_IFREG):
                raise _refused(name, "is neither a file nor a folder")
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _refused(name, "is encrypted, or compressed with another method than deflate")
            with archive.open(info) as content:
                yield name, meter.read(name, iter(lambda: content.read(_CHUNK_BYTES), b""), info.compress_size)


def _check_zip_directory(file: BinaryIO) -> None:
    """Reject a central directory that is too large, because zipfile creates an object for every entry at once.

    Checks every position that could be the end record, because it is not known which one zipfile will use.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ZIP_TAIL_BYTES - 20))
    tail = file.read()
    file.seek(0)
    if b"PK\x06\x07" in tail:
        raise _refused("", "is a zip64 archive, a format for archives above the size limit", ProblemCode.TOO_LARGE)
    at = tail.find(b"PK\x05\x06")
    while at >= 0 and at + _ZIP_END.size <= len(tail):
        directory_bytes = _ZIP_END.unpack_from(tail, at)[5]
        if directory_bytes > _MAX_DIRECTORY_BYTES:
            raise _refused("", f"contains more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
        at = tail.find(b"PK\x05\x06", at + 1)


def _inflate(file: BinaryIO, tar: IO[bytes], limits: ArchiveLimits) -> None:
    """Decompress a gzip stream into ``tar`` within the limits."""
    packed_bytes = file.seek(0, 2)
    file.seek(0)
    inflated_bytes = 0
    # By default GzipFile takes the mode of the file, and a temporary file is also open for writing.
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            inflated_bytes += len(chunk)
            if inflated_bytes > limits.tar_bytes:
                raise _refused("", f"contains more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            _check_ratio("", inflated_bytes, packed_bytes)
            tar.write(chunk)
    tar.seek(0)


def _tar_members(file: IO[bytes], limits: ArchiveLimits) -> Iterator[tuple[str, bytes]]:
    if file.seek(0, 2) > limits.tar_bytes:
        raise _refused("", f"contains more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
    file.seek(0)
    meter = _Meter(limits)
    with tarfile.TarFile(fileobj=_HeaderReader(file)) as archive:
        while (info := archive.next()) is not None:
            # tarfile keeps every header that it has read, so a small archive could fill the memory.
            archive.members.clear()  # type: ignore[attr-defined]  # missing in typeshed
            archive.pax_headers = {}
            name = meter.member(info.name)
            if info.isdir():
                continue
            if not info.isreg() or info.issparse():
                raise _refused(name, "is neither a file nor a folder")
            yield name, meter.read(name, _slice(file, info.offset_data, info.size))
        end = archive.offset
    # tarfile takes a damaged header for the end of the archive and would silently drop the members after it.
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
    """File object for tarfile that allows reads of small headers only. A header can claim any size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_HEADER_BYTES:
            raise _refused("", f"has a header of more than {_MAX_HEADER_BYTES} bytes", ProblemCode.TOO_LARGE)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
