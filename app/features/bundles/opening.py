"""A zip that nobody vouches for, opened without believing a word of it: what would harm is refused before it is read.

Nothing is ever written where a member's name says so: whoever needs files makes them under their hashes.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from app.features.bundles.errors import BundleRefused

MAX_RATIO: Final = 200
"""Of the contents to the file itself, where a bag was packed again; our own are not packed at all."""

_CHUNK = 1024 * 1024
_RATIO_FROM_BYTES = 1024 * 1024
_ENCRYPTED = 0x1
_LOCAL_BYTES = 30
_MAX_NAME_BYTES = 1024
_END = struct.Struct("<4s4H2LH")
_LOCATOR64 = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, UnicodeDecodeError, NotImplementedError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLimits:
    """What a bundle may hold: members, bytes of one, bytes of all."""

    members: int = 500_000
    member_bytes: int = 2 * 1024**3
    total_bytes: int = 64 * 1024**3


LIMITS: Final = BundleLimits()


class OpenBundle:
    """The members of an opened bundle, their names relative to the bag's folder. Reads block."""

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile, base: str, limits: BundleLimits) -> None:
        self.file = file
        self._archive = archive
        self.base = base
        self._limits = limits
        self._infos = {info.orig_filename.removeprefix(f"{base}/"): info for info in archive.infolist()}

    @property
    def names(self) -> list[str]:
        """In the order in which they stand in the file."""
        return sorted(self._infos, key=lambda name: self._infos[name].header_offset)

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def place(self, name: str) -> tuple[int, int]:
        """Where a member's header begins, and the size of its content."""
        info = self._infos[name]
        return info.header_offset, info.file_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member, piece by piece, counted as it comes.

        Raises:
            BundleRefused: there is no such member, it is damaged, or it grows beyond a limit.
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
                    if size > max(_RATIO_FROM_BYTES, MAX_RATIO * info.compress_size):
                        raise BundleRefused(f"{name} inflates to more than {MAX_RATIO} times its size")
                    yield chunk
        except _DAMAGED as error:
            raise BundleRefused(f"{name} is damaged: {error}") from error

    def read(self, name: str, *, at_most: int | None = None) -> bytes:
        """The whole content of a member; raises as ``chunks`` does, and for one of more than ``at_most`` bytes."""
        if at_most is not None and name in self._infos and self._infos[name].file_size > at_most:
            raise BundleRefused(f"{name} has more than {at_most} bytes")
        return b"".join(self.chunks(name))


@contextmanager
def opened(path: Path, limits: BundleLimits = LIMITS) -> Iterator[OpenBundle]:
    """A bundle for as long as the block lasts.

    Raises:
        BundleRefused: it cannot be read, is no zip of one folder, or holds what a bundle never holds.
    """
    try:
        with path.open("rb") as file:
            _check_size_of_directory(file, limits)
            with _archive(file) as archive:
                yield OpenBundle(file, archive, _checked(archive.infolist(), limits), limits)
    except OSError as error:
        raise BundleRefused(f"{path} cannot be read: {error.strerror or error}") from error


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise BundleRefused(f"it is damaged or no zip: {error}") from error


def _checked(infos: list[zipfile.ZipInfo], limits: BundleLimits) -> str:
    """The one folder that all members are in, once they all are harmless."""
    if not infos:
        raise BundleRefused("it is empty")
    if len(infos) > limits.members:
        raise BundleRefused(f"it holds more than {limits.members} members")
    seen: set[str] = set()
    bases: set[str] = set()
    total = 0
    for info in infos:
        _check_member(info)
        total += info.file_size
        alike = unicodedata.normalize("NFC", info.orig_filename).casefold()
        if alike in seen:
            raise BundleRefused(f"{info.orig_filename!r} stands twice in it, or differs from another name in case only")
        seen.add(alike)
        bases.add(info.orig_filename.partition("/")[0])
    if total > limits.total_bytes:
        raise BundleRefused(f"it holds more than {limits.total_bytes} bytes")
    _check_overlap(infos)
    if len(bases) != 1:
        raise BundleRefused(f"a bag is one folder, and this holds {len(bases)} things side by side")
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
        raise BundleRefused(f"{name!r} is no name of a file in a bag")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BundleRefused(f"{name} is a link or something else that is no file")
    if info.flag_bits & _ENCRYPTED:
        raise BundleRefused(f"{name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BundleRefused(f"{name} is packed by another method than deflate")


def _check_overlap(infos: list[zipfile.ZipInfo]) -> None:
    """Members that share bytes make a small file hold much: each must end before the next begins."""
    end = 0
    for info in sorted(infos, key=lambda each: each.header_offset):
        if info.header_offset < end:
            raise BundleRefused(f"{info.orig_filename} shares its bytes with another member")
        end = info.header_offset + _LOCAL_BYTES + info.compress_size


def _check_size_of_directory(file: BinaryIO, limits: BundleLimits) -> None:
    """Refuse a directory too long to be read: zipfile makes an object of every entry before anyone can count."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - 0xFFFF))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise BundleRefused("it is no zip")
    length: int = _END.unpack_from(tail, at)[5]
    before = at - _LOCATOR64.size
    if before >= 0 and tail[before : before + 4] == b"PK\6\7":
        place = _LOCATOR64.unpack_from(tail, before)[2]
        file.seek(min(place, size))
        record = file.read(_END64.size)
        file.seek(0)
        if len(record) < _END64.size:
            raise BundleRefused("it is damaged: its directory is not where it says")
        length = _END64.unpack(record)[8]
    if length > limits.members * (64 + _MAX_NAME_BYTES) or length > size:
        raise BundleRefused(f"it holds more than {limits.members} members")
