"""Zip of a bundle, with a manifest of the size and the SHA-256 of every file.

Bundles are untrusted: an unsafe zip is refused before its content is used, and files are never extracted to a path that
a member name chooses. Members are not compressed and have constant dates, so names and contents decide every byte of
the zip, and a small file cannot expand to a large one.
"""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.errors import AppError
from cache.atomic_files import atomic_path
from cache.unicode_forms import nfc
from judges.isolation.serialization import max_values

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MAX_FILES: Final = 200_000
MAX_FILE_BYTES: Final = 512 * 1024 * 1024
MAX_JSON_BYTES: Final = 64 * 1024 * 1024
MAX_JSON_VALUES: Final = 5_000_000
"""Maximum number of values in a JSON file. Decoded, each one needs up to about 100 bytes."""

_EXTENSIONS: Final[Mapping[str, str]] = {
    "text/plain; charset=utf-8": "txt",
    "text/html": "html",
    "application/pdf": "pdf",
    "application/json": "json",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
}
_MAX_NAME_BYTES = 512
_MAX_DIRECTORY_BYTES = 128 * 1024 * 1024
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64_BYTES = 20
_DAMAGE_ERRORS = (zipfile.BadZipFile, struct.error, EOFError, UnicodeError, NotImplementedError, ValueError)


class BundleError(AppError):
    """A bundle cannot be written."""


class BundleRefused(BundleError):
    """The file is not a valid bundle, is unsafe, or contradicts itself."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


_Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


class BundledFile(_Entry):
    """File of a bundle, with its size in bytes."""

    path: Annotated[str, Field(max_length=_MAX_NAME_BYTES)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]


class AbsentFile(_Entry):
    """File that is missing from the bundle: its path, and a sentence why."""

    path: str
    reason: str


class BundledResult(_Entry):
    """Result in the bundle, with the number of overrides at the time of the export."""

    result_id: _Name
    task_id: _Name
    answer_name: Annotated[str, Field(max_length=200)]
    overrides: Annotated[int, Field(ge=0)]


class UnjudgedAnswer(_Entry):
    """Answer without a result, with the error of its last attempt."""

    task_id: str
    answer_name: str
    error_code: str | None


class Manifest(_Entry):
    """Contents of ``manifest.json``. ``content``: whether page bodies and call logs were exported."""

    format: int = FORMAT
    agent: Annotated[str, Field(max_length=200)]
    content: bool
    results: tuple[BundledResult, ...] = ()
    without_result: tuple[UnjudgedAnswer, ...] = ()
    absent: tuple[AbsentFile, ...] = ()
    files: tuple[BundledFile, ...] = ()

    @property
    def bytes(self) -> int:
        """Size of the files."""
        return sum(file.bytes for file in self.files)


def evidence_path(sha256: str, media_type: str) -> str:
    """Return the path of a body of a page, named by its hash."""
    return f"evidence/{sha256}.{_EXTENSIONS.get(media_type, 'bin')}"


def script_paths(sha256: str) -> tuple[str, str]:
    """Return both possible paths of a task file: Python, or a task in YAML."""
    return f"scripts/{sha256}.py", f"scripts/{sha256}.yaml"


def json_bytes(document: Any) -> bytes:
    """Return canonical JSON: equal values give equal bytes."""
    return (json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode("utf-8", "replace")


def parse_json(data: bytes, path: str) -> Any:
    """Parse the JSON file at ``path`` of a bundle. Raises BundleRefused."""
    if len(data) > MAX_JSON_BYTES or max_values(data) > MAX_JSON_VALUES:
        raise BundleRefused(f"{path} has more than {MAX_JSON_BYTES} bytes or {MAX_JSON_VALUES} values")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BundleRefused(f"{path} is not valid JSON: {error}") from error


class _Sequential:
    """File without ``seek``, for which ``zipfile`` writes headers that it never changes again."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


class _Comparison(_Sequential):
    """Sink that compares what is written with an existing file, which others may read in between."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._is_equal = True
        self._offset = 0

    def write(self, data: bytes) -> int:
        self._file.seek(self._offset)
        self._is_equal = self._file.read(len(data)) == bytes(data) and self._is_equal
        self._offset += len(data)
        return len(data)

    def is_equal(self) -> bool:
        """Return whether the whole file is what was written."""
        return self._is_equal and self._file.seek(0, 2) == self._offset


class BundleWriter:
    """Writer of a bundle. Use it as a context manager, and call ``finish`` after the last file."""

    def __init__(self, file: BinaryIO | _Sequential) -> None:
        sink = file if isinstance(file, _Sequential) else _Sequential(file)
        self._zip = zipfile.ZipFile(cast(BinaryIO, sink), "w")
        self.files: dict[str, BundledFile] = {}

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def add(self, path: str, data: bytes) -> None:
        """Write one file. Raises OSError, or BundleError if it is too large."""
        if len(data) > MAX_FILE_BYTES:
            raise BundleError(f"{path} has more than {MAX_FILE_BYTES} bytes")
        self._write(path, data)
        self.files[path] = BundledFile(path=path, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest: its fields, and the files that were added."""
        files = [self.files[path].model_dump() for path in sorted(self.files)]
        self._write(MANIFEST, json_bytes({**manifest, "files": files}))

    def _write(self, path: str, data: bytes) -> None:
        info = zipfile.ZipInfo(path)  # dated 1 January 1980, the earliest date of the format
        info.create_system, info.external_attr = 3, 0o100644 << 16
        self._zip.writestr(info, data)


@contextmanager
def new_bundle(path: Path) -> Iterator[BundleWriter]:
    """Yield the writer of a bundle, which appears at ``path`` completely or not at all. Raises OSError."""
    with atomic_path(path, synced=True) as draft, draft.open("wb") as file, BundleWriter(file) as writer:
        yield writer


class BundleReader:
    """Files of an open bundle. Reads block. Each one checks size and hash of the file against the manifest."""

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile) -> None:
        self._file = file
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        self.manifest = self._read_manifest()
        self.files = {file.path: file for file in self.manifest.files}

    def __contains__(self, path: str) -> bool:
        return path in self.files

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            BundleRefused: the bundle does not contain the file, or it has changed.
        """
        known = self.files.get(path)
        if known is None:
            raise BundleRefused(f"{path} is not in the bundle")
        data = self._content(path)
        if len(data) != known.bytes or hashlib.sha256(data).hexdigest() != known.sha256:
            raise BundleRefused(f"{path} has changed: its size or SHA-256 differs from {MANIFEST}")
        return data

    def read_json(self, path: str) -> Any:
        """Return the content of a JSON file. Raises BundleRefused."""
        return parse_json(self.read(path), path)

    def problems(self) -> list[str]:
        """Read the whole zip. Return a sentence for each file and byte that does not match the manifest."""
        problems = [f"{path} is missing" for path in self.files.keys() - self._members.keys()]
        problems += [f"{path} is not in {MANIFEST}" for path in self._members.keys() - self.files.keys() - {MANIFEST}]
        comparison = _Comparison(self._file)
        with BundleWriter(comparison) as expected:
            for path in sorted(self._members, key=lambda path: self._members[path].header_offset):
                try:
                    data = self.read(path) if path in self.files else self._content(path)
                except BundleRefused as error:
                    problems.append(str(error))
                    continue
                expected.add(path, data)
        if not problems and not comparison.is_equal():
            problems.append("bytes of the zip outside of its files have changed, or another program has written it")
        return sorted(problems)

    def _content(self, path: str) -> bytes:
        info = self._members.get(path)
        if info is None:
            raise BundleRefused(f"{path} is missing")
        try:
            return self._archive.read(info)
        except _DAMAGE_ERRORS as error:
            raise BundleRefused(f"{path} is damaged: {error}") from error

    def _read_manifest(self) -> Manifest:
        try:
            manifest = Manifest.model_validate(parse_json(self._content(MANIFEST), MANIFEST))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise BundleRefused(
                f"{MANIFEST} is invalid at {'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from error
        if manifest.format != FORMAT:
            raise BundleRefused(f"{MANIFEST} has format {manifest.format}; this version of assay reads only {FORMAT}")
        for names in (
            [file.path for file in manifest.files],
            [result.result_id for result in manifest.results],
            [absent.path for absent in manifest.absent],
        ):
            if len(names) != len(set(names)):
                raise BundleRefused(f"{MANIFEST} lists a file or result twice")
        if contradictions := {file.path for file in manifest.files} & {absent.path for absent in manifest.absent}:
            raise BundleRefused(f"{MANIFEST} lists {min(contradictions)} as a file and as absent")
        return manifest


@contextmanager
def open_bundle(path: Path) -> Iterator[BundleReader]:
    """Open a bundle for the duration of the block.

    Raises:
        BundleRefused: the file cannot be read, is not a bundle, or contains something unsafe.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            _check_directory_size(file, size)
            with _archive(file) as archive:
                _check_members(archive.infolist(), size)
                yield BundleReader(file, archive)
    except OSError as error:
        raise BundleRefused(f"Cannot read {path}: {error.strerror or error}") from error


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGE_ERRORS as error:
        raise BundleRefused(f"the file is damaged or not a zip: {error}") from error


def _check_directory_size(file: BinaryIO, size: int) -> None:
    """Refuse a large central directory, before ``zipfile`` creates an object for each of its entries."""
    file.seek(max(0, size - _END.size - _LOCATOR64_BYTES - _END64.size))
    tail = file.read()
    if not tail[-_END.size :].startswith(b"PK\5\6"):
        raise BundleRefused("the file is not a zip, or is damaged at its end")
    entries, length = _END.unpack(tail[-_END.size :])[4:6]
    if (entries == 0xFFFF or length == 0xFFFF_FFFF) and len(tail) > _END64.size + _END.size:
        length = _END64.unpack(tail[: _END64.size])[8]
    if length > _MAX_DIRECTORY_BYTES:
        raise BundleRefused(f"the zip contains more than {MAX_FILES} files")


def _check_members(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    if len(members) > MAX_FILES:
        raise BundleRefused(f"the zip contains more than {MAX_FILES} files")
    seen: set[str] = set()
    for info in members:
        _check_member(info)
        folded = nfc(info.filename).casefold()
        if folded in seen:
            raise BundleRefused(f"{info.filename!r} occurs twice, or differs from another name only in case or form")
        seen.add(folded)
    if sum(info.file_size for info in members) > size:
        raise BundleRefused("the files of the zip share their bytes")


def _check_member(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    if (
        any(part in ("", ".", "..") for part in name.split("/"))
        or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES
        or any(character in name for character in "\\:\0")
        or not name.isprintable()
    ):
        raise BundleRefused(f"{name!r} is not a valid file name in a bundle")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise BundleRefused(f"{name} is not a regular file")
    if info.flag_bits & 0x1 or info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise BundleRefused(f"{name} is encrypted or compressed: a bundle contains only stored files")
    if info.file_size > MAX_FILE_BYTES:
        raise BundleRefused(f"{name} has more than {MAX_FILE_BYTES} bytes")
