"""Reader for untrusted bundle zips. Unsafe archives are refused before their content is read.

Files are never extracted to a path that a member name chooses. Code that needs files names them by their hash.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from app.features.bundles.errors import BundleRefused
from cache.unicode_forms import nfc

MAX_COMPRESSION_RATIO: Final = 200
"""Maximum compression ratio of a member. Applies to bags that another program compressed; assay does not compress."""

_CHUNK = 1024 * 1024
_MIN_BYTES_FOR_RATIO = 1024 * 1024
_ENCRYPTED = 0x1
_LOCAL_BYTES = 30
_MAX_NAME_BYTES = 1024
_END = struct.Struct("<4s4H2LH")
_LOCATOR64 = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_DAMAGE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    UnicodeDecodeError,
    NotImplementedError,
    ValueError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLimits:
    """Limits of a bundle: number of members, bytes per member, total bytes."""

    members: int = 500_000
    member_bytes: int = 2 * 1024**3
    total_bytes: int = 64 * 1024**3


LIMITS: Final = BundleLimits()


class BundleReader:
    """Members of an open bundle. Names are relative to the folder of the bag. Reads block."""

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile, base: str, limits: BundleLimits) -> None:
        self.file = file
        self._archive = archive
        self.base = base
        self._limits = limits
        self._infos = {info.orig_filename.removeprefix(f"{base}/"): info for info in archive.infolist()}

    @property
    def names(self) -> list[str]:
        """Member names in file order."""
        return sorted(self._infos, key=lambda name: self._infos[name].header_offset)

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def size(self, name: str) -> int:
        """Return the size of a member's content in bytes."""
        return self._infos[name].file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a member in chunks and enforce the limits.

        Raises:
            BundleRefused: the member does not exist, is damaged or exceeds a limit.
        """
        info = self._infos.get(name)
        if info is None:
            raise BundleRefused(f"{name} is not in the bundle")
        size = 0
        try:
            with self._archive.open(info) as content:
                while chunk := content.read(_CHUNK):
                    size += len(chunk)
                    if size > self._limits.member_bytes:
                        raise BundleRefused(f"{name} has more than {self._limits.member_bytes} bytes")
                    if size > max(_MIN_BYTES_FOR_RATIO, MAX_COMPRESSION_RATIO * info.compress_size):
                        raise BundleRefused(
                            f"{name} inflates to more than {MAX_COMPRESSION_RATIO} times its compressed size"
                        )
                    yield chunk
        except _DAMAGE_ERRORS as error:
            raise BundleRefused(f"{name} is damaged: {error}") from error

    def read(self, name: str, *, max_bytes: int | None = None) -> bytes:
        """Return the whole content of a member. Raises like ``chunks``, and if it has more than ``max_bytes`` bytes."""
        if max_bytes is not None and name in self._infos and self._infos[name].file_size > max_bytes:
            raise BundleRefused(f"{name} has more than {max_bytes} bytes")
        return b"".join(self.chunks(name))


@contextmanager
def open_bundle(path: Path, limits: BundleLimits = LIMITS) -> Iterator[BundleReader]:
    """Open a bundle for the duration of the block.

    Raises:
        BundleRefused: the file cannot be read, is not a zip with a single folder, or contains something unsafe.
    """
    try:
        with path.open("rb") as file:
            _check_directory_size(file, limits)
            with _archive(file) as archive:
                yield BundleReader(file, archive, _base_folder(archive.infolist(), limits), limits)
    except OSError as error:
        raise BundleRefused(f"Cannot read {path}: {error.strerror or error}") from error


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGE_ERRORS as error:
        raise BundleRefused(f"the file is damaged or not a zip: {error}") from error


def _base_folder(infos: list[zipfile.ZipInfo], limits: BundleLimits) -> str:
    """Check every member and return the single folder that contains them."""
    if not infos:
        raise BundleRefused("the zip is empty")
    if len(infos) > limits.members:
        raise BundleRefused(f"the zip contains more than {limits.members} members")
    seen: set[str] = set()
    bases: set[str] = set()
    total = 0
    for info in infos:
        _check_member(info)
        total += info.file_size
        folded = nfc(info.orig_filename).casefold()
        if folded in seen:
            raise BundleRefused(
                f"{info.orig_filename!r} occurs twice, or differs from another name only in case or Unicode form"
            )
        seen.add(folded)
        bases.add(info.orig_filename.partition("/")[0])
    if total > limits.total_bytes:
        raise BundleRefused(f"the zip contains more than {limits.total_bytes} bytes")
    _check_overlap(infos)
    if len(bases) != 1:
        raise BundleRefused(f"a bag is a single top-level folder, but the zip has {len(bases)} top-level entries")
    return bases.pop()


def _check_member(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    parts = name.split("/")
    if (
        len(parts) < 2
        or any(part in ("", ".", "..") for part in parts)
        or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES
        or any(character in name for character in "\\:\0")
        or not name.isprintable()
    ):
        raise BundleRefused(f"{name!r} is not a valid file name in a bag")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BundleRefused(f"{name} is not a regular file")
    if info.flag_bits & _ENCRYPTED:
        raise BundleRefused(f"{name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BundleRefused(f"{name} uses an unsupported compression method; only stored and deflate are allowed")


def _check_overlap(infos: list[zipfile.ZipInfo]) -> None:
    """Refuse overlapping members, which let a small file expand to a large one."""
    end = 0
    for info in sorted(infos, key=lambda each: each.header_offset):
        if info.header_offset < end:
            raise BundleRefused(f"{info.orig_filename} shares its bytes with another member")
        end = info.header_offset + _LOCAL_BYTES + info.compress_size


def _check_directory_size(file: BinaryIO, limits: BundleLimits) -> None:
    """Refuse a central directory that is too large, before zipfile creates an object for every entry."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - 0xFFFF))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise BundleRefused("the file is not a zip")
    length: int = _END.unpack_from(tail, at)[5]
    before = at - _LOCATOR64.size
    if before >= 0 and tail[before : before + 4] == b"PK\6\7":
        place = _LOCATOR64.unpack_from(tail, before)[2]
        file.seek(min(place, size))
        record = file.read(_END64.size)
        file.seek(0)
        if len(record) < _END64.size:
            raise BundleRefused("the file is damaged: the central directory is not at its recorded offset")
        length = _END64.unpack(record)[8]
    if length > limits.members * (64 + _MAX_NAME_BYTES) or length > size:
        raise BundleRefused(f"the zip contains more than {limits.members} members")
