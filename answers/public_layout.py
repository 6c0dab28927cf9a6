"""Answers in the public layout ``<agent>/<task_id>/answer_<k>.md``, read from a folder or an untrusted archive.

Archives are zip, tar or tar.gz. The limits apply to bytes that were actually decompressed, not to sizes in headers:
number of members, bytes per member, total bytes, and compression ratio. Links, devices, encrypted members, sparse
members, absolute names and names with ``..`` are rejected. Members of an archive of answers are read into memory.
Nothing is written under a member's name.

"""

from __future__ import annotations

import gzip
import io
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

from answers.errors import AnswersNotFound, InvalidSubmission, Problem, ProblemCode, invalid
from answers.evidence_files import EVIDENCE_SUFFIX, evidence_folder, evidence_records, invalid_evidence
from answers.submission import (
    MAX_ANSWER_BYTES,
    Answer,
    Submission,
    answer_number,
    decode_text,
    name_problems,
    text_problems,
)

MAX_MEMBERS = 5_000
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Maximum total size of all members of an archive of answers, which are read into memory."""
MAX_EVIDENCE_BYTES = 24 * 1024 * 1024
"""Maximum size of one file in the folder of the pages that an agent supplied with an answer."""
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


ANSWER_LIMITS = ArchiveLimits()


def read_members(file: BinaryIO, limits: ArchiveLimits = ANSWER_LIMITS) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every regular member. ``file`` must be seekable and is read from the start.

    Raises:
        InvalidSubmission: The archive has another format, is damaged, exceeds a limit, or contains members that
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
        raise invalid(
            "", f"is damaged or not a zip, tar or tar.gz archive: {error}", ProblemCode.BAD_ARCHIVE
        ) from error


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
            raise invalid("", f"contains more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
        plain = name.removeprefix("./").removesuffix("/")
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise invalid(plain, "has a name that leads out of the archive", ProblemCode.BAD_ARCHIVE)
        if plain in self._names:
            raise invalid(plain, "occurs twice in the archive", ProblemCode.DUPLICATE)
        self._names.add(plain)
        return plain

    def read(self, name: str, chunks: Iterable[bytes], packed_bytes: int | None = None) -> bytes:
        """Return the bytes of a member. ``packed_bytes`` is its compressed size, None if it is not compressed."""
        data = bytearray()
        for chunk in chunks:
            data += chunk
            self._total += len(chunk)
            if len(data) > self._limits.member_bytes:
                raise invalid(name, f"has more than {self._limits.member_bytes} bytes", ProblemCode.TOO_LARGE)
            if self._total > self._limits.total_bytes:
                raise invalid("", f"contains more than {self._limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            if packed_bytes is not None:
                _check_ratio(name, len(data), packed_bytes)
        return bytes(data)


def _check_ratio(name: str, inflated_bytes: int, packed_bytes: int) -> None:
    if inflated_bytes > max(RATIO_FROM_BYTES, MAX_RATIO * packed_bytes):
        raise invalid(name, f"decompresses to more than {MAX_RATIO} times its size", ProblemCode.TOO_LARGE)


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
                raise invalid(
                    name, "is damaged: its offset is before the start of the archive", ProblemCode.BAD_ARCHIVE
                )
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() and kind in (0, stat.S_IFDIR):
                continue
            if kind not in (0, stat.S_IFREG):
                raise invalid(name, "is neither a file nor a folder", ProblemCode.BAD_ARCHIVE)
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise invalid(
                    name, "is encrypted, or compressed with another method than deflate", ProblemCode.BAD_ARCHIVE
                )
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
        raise invalid("", "is a zip64 archive, a format for archives above the size limit", ProblemCode.TOO_LARGE)
    at = tail.find(b"PK\x05\x06")
    while at >= 0 and at + _ZIP_END.size <= len(tail):
        directory_bytes = _ZIP_END.unpack_from(tail, at)[5]
        if directory_bytes > _MAX_DIRECTORY_BYTES:
            raise invalid("", f"contains more than {MAX_MEMBERS} members", ProblemCode.TOO_MANY)
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
                raise invalid("", f"contains more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
            _check_ratio("", inflated_bytes, packed_bytes)
            tar.write(chunk)
    tar.seek(0)


def _tar_members(file: IO[bytes], limits: ArchiveLimits) -> Iterator[tuple[str, bytes]]:
    if file.seek(0, 2) > limits.tar_bytes:
        raise invalid("", f"contains more than {limits.total_bytes} bytes", ProblemCode.TOO_LARGE)
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
                raise invalid(name, "is neither a file nor a folder", ProblemCode.BAD_ARCHIVE)
            yield name, meter.read(name, _slice(file, info.offset_data, info.size))
        end = archive.offset
    # tarfile takes a damaged header for the end of the archive and would silently drop the members after it.
    file.seek(end)
    if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise invalid("", "is damaged: a member's header cannot be read", ProblemCode.BAD_ARCHIVE)


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
            raise invalid("", f"has a header of more than {_MAX_HEADER_BYTES} bytes", ProblemCode.TOO_LARGE)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


EVIDENCE_LIMITS = ArchiveLimits(member_bytes=MAX_EVIDENCE_BYTES, total_bytes=MAX_TOTAL_BYTES)
Convert: TypeAlias = Callable[[str, bytes], str]
"""Returns the Markdown of a document, given its path and bytes. Raises InvalidSubmission."""
DOCUMENT_SUFFIXES = (".docx", ".pdf", ".html", ".htm", ".xhtml")
ANSWERS = "answer_<k>.md"
LAYOUT = f"<agent>/<task_id>/{ANSWERS}"
_METADATA = ".meta.json"


def read_folder(root: Path, agent: str, task_ids: Collection[str] = ()) -> tuple[Submission, ...]:
    """Return the answers of one agent below ``root``, sorted, one submission per task. Blocks on disk reads.

    Reads all tasks unless ``task_ids`` names some. Other files are not answers; ``ignored_files`` lists them.

    Raises:
        AnswersNotFound: The agent, or a named task, has no answers.
        InvalidSubmission: Names or texts are invalid. All invalid files are listed.
    """
    problems = [*name_problems(agent, "agent")]
    for task_id in task_ids:
        problems += name_problems(task_id, "task_id")
    if problems:
        raise InvalidSubmission(problems)
    folder = root / agent
    if not folder.is_dir():
        raise AnswersNotFound(f"no folder {folder} with answers of agent {agent!r}")
    tasks = _task_folders(folder, task_ids)
    files: dict[str, bytes] = {}
    for task in tasks:
        answers = dict(_answers_in(root, task)) if task.is_dir() else {}
        if not answers and task_ids:
            raise AnswersNotFound(f"no {ANSWERS} files in {task}")
        files |= answers
    if not files:
        raise AnswersNotFound(f"no answers of agent {agent!r} in {folder}")
    return _submissions(files)


def ignored_files(root: Path, agent: str, task_ids: Collection[str] = ()) -> list[Path]:
    """Return the files that ``read_folder`` ignores: answers in no folder of a task, and other files in these."""
    tasks = [task for task in _task_folders(root / agent, task_ids) if task.is_dir()]
    is_complete = 0 < len(task_ids) == len(tasks)  # then answers in no folder do not matter
    loose = () if is_complete else filter(Path.is_file, _visible(root / agent))
    return [path for path in loose if is_answer(path.name)] + [path for task in tasks for path in other_files(task)]


def other_files(task: Path) -> list[Path]:
    """Return the visible files in the folder of a task that are neither answers nor their metadata, sorted."""
    return [
        path
        for path in _visible(task)
        if not (is_answer(path.name) or is_metadata(path.name) or is_evidence(path.name))
    ]


def is_answer(file_name: str) -> bool:
    return answer_number(file_name) is not None


def is_metadata(file_name: str) -> bool:
    """Return whether the file describes an answer: ``answer_<k>.meta.json``."""
    return file_name.endswith(_METADATA) and is_answer(f"{file_name.removesuffix(_METADATA)}.md")


def is_evidence(folder_name: str) -> bool:
    """Return whether the folder has the pages of an answer: ``answer_<k>.evidence``."""
    return folder_name.endswith(EVIDENCE_SUFFIX) and is_answer(f"{folder_name.removesuffix(EVIDENCE_SUFFIX)}.md")


def read_evidence(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the records of the pages that an agent supplied, from their folder; none if there is no folder. Blocks.

    Raises:
        InvalidSubmission: The folder is invalid, too large, or contains a link or another folder.
    """
    if not folder.is_dir():
        return ()
    files: dict[str, bytes] = {}
    left = MAX_TOTAL_BYTES
    for path in _visible(folder):
        place = f"{folder.name}/{path.name}"
        if path.is_symlink() or not path.is_file():
            raise invalid_evidence(place, "is not a file: put the pages directly into the folder")
        with path.open("rb") as file:
            files[path.name] = file.read(min(left, MAX_EVIDENCE_BYTES) + 1)
        left -= len(files[path.name])
        if left < 0 or len(files[path.name]) > MAX_EVIDENCE_BYTES:
            message = f"is too large: at most {MAX_EVIDENCE_BYTES} bytes, and {MAX_TOTAL_BYTES} for all pages"
            raise invalid_evidence(place, message)
    return evidence_records(files, folder.name)


def _task_folders(folder: Path, task_ids: Collection[str]) -> list[Path]:
    return [folder / task_id for task_id in task_ids] or [each for each in _visible(folder) if each.is_dir()]


def _answers_in(root: Path, task: Path) -> Iterator[tuple[str, bytes]]:
    resolved_root = root.resolve()
    for path in _visible(task):
        if is_answer(path.name) and path.is_file():
            name = path.relative_to(root).as_posix()
            if not path.resolve().is_relative_to(resolved_root):
                message = "is a link to a file outside the folder"
                raise invalid(name, message, ProblemCode.BAD_NAME)
            with path.open("rb") as file:
                yield name, file.read(MAX_ANSWER_BYTES + 1)  # one byte over the limit is enough to reject it


def _visible(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.iterdir()) if not each.name.startswith("."))


def read_archive(file: BinaryIO, convert: Convert | None = None) -> tuple[Submission, ...]:
    """Return the answers in a zip, tar or tar.gz archive, sorted, one submission per agent and task.

    With ``convert``, ``answer_<k>`` can also be a document (``DOCUMENT_SUFFIXES``), which becomes Markdown.

    Pages that an agent supplied are in ``answer_<k>.evidence/`` beside the answer. ``file`` must be seekable. Ignores
    files that desktops add (``__MACOSX``, hidden files) and metadata of answers. All other members must follow the
    layout. Blocks for seconds if the archive is large.

    Raises:
        InvalidSubmission: The archive is damaged, exceeds a limit, or contains a member that does not follow the
            layout. Or names or texts are invalid; then all invalid members are listed.
    """
    files: dict[str, bytes] = {}
    evidence: dict[str, dict[str, bytes]] = defaultdict(dict)
    folded: dict[str, str] = {}
    for name, content in read_members(file, EVIDENCE_LIMITS):
        parts = name.split("/")
        if parts[0] == "__MACOSX" or parts[-1].startswith(".") or (len(parts) == 3 and is_metadata(parts[-1])):
            continue
        if len(parts) == 4 and is_evidence(parts[2]):
            evidence["/".join(parts[:3])][parts[3]] = content
            continue
        answer = name if convert is None else _without_document_suffix(name)
        if len(parts) != 3 or not is_answer(answer.rpartition("/")[2]):
            message = f"does not follow the layout {LAYOUT}"
            raise invalid(name, message, ProblemCode.BAD_ARCHIVE)
        if folded.setdefault(answer.casefold(), name) != name or name in files:
            message = "occurs twice in the archive (upper and lower case, and all formats, count as equal)"
            raise invalid(name, message, ProblemCode.DUPLICATE)
        files[name] = content
    if not files:
        raise invalid("", f"contains no {LAYOUT}", ProblemCode.EMPTY)
    answered = {evidence_folder(_without_document_suffix(name)) for name in files}
    for folder in evidence.keys() - answered:
        message = "has no answer beside it: add the answer, or remove the folder"
        raise invalid(folder, message, ProblemCode.BAD_ARCHIVE)
    return _submissions(files, convert, evidence)


def _without_document_suffix(name: str) -> str:
    """Return the name of an answer in Markdown: ``a/t/answer_1.md`` for ``a/t/answer_1.docx``."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.md" if f"{dot}{suffix}".lower() in DOCUMENT_SUFFIXES else name


def _submissions(
    files: Mapping[str, bytes],
    convert: Convert | None = None,
    evidence: Mapping[str, Mapping[str, bytes]] | None = None,
) -> tuple[Submission, ...]:
    """Build submissions from file contents, keyed by ``agent/task_id/answer.md``, or a document of that name.

    ``evidence`` has the files of supplied pages by their folder.
    """
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    problems: list[Problem] = []
    for path in sorted(files, key=natural_key):
        answer = _without_document_suffix(path)
        agent, task_id, name = answer.split("/")
        invalid = [*name_problems(agent, path), *name_problems(task_id, path)]
        try:
            text = decode_text(files[path], path) if convert is None or path == answer else convert(path, files[path])
            folder = evidence_folder(answer)
            records = evidence_records(evidence[folder], folder) if evidence and folder in evidence else ()
        except InvalidSubmission as error:
            problems += [*invalid, *error.problems]
            continue
        problems += [*invalid, *text_problems(text, path)]
        answers[agent, task_id].append(Answer(name=name, text=text, evidence=records))
    if problems:
        raise InvalidSubmission(problems)
    return tuple(
        Submission(agent=agent, task_id=task_id, answers=tuple(each)) for (agent, task_id), each in answers.items()
    )


def natural_key(path: str) -> list[tuple[int, str]]:
    """Return a sort key that puts ``answer_2`` before ``answer_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", path)]
