"""Readers for answer files and page texts given by path, and the report of files that are not answers."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from answers.errors import InvalidSubmission, ProblemCode
from answers.evidence_files import evidence_folder
from answers.public_layout import (
    ANSWERS,
    DOCUMENT_SUFFIXES,
    is_answer,
    is_evidence,
    is_metadata,
    natural_key,
    read_evidence,
)
from answers.submission import decode_text, name_problems, with_suffix
from app.console import event_loop
from app.console.errors import WrongUsage
from app.console.streams import stderr_console
from app.engine.report_files import MAX_DOCUMENT_BYTES, read_report
from cache.backends.documents import decode_html
from cache.sources.supplied import SuppliedRejected, read_supplied
from cache.sources.uploads import UploadedPage

STDIN: Final = Path("-")
STDIN_NAME: Final = "standard input"


def check_name(name: str, option: str) -> None:
    """Raise WrongUsage if ``name`` cannot be the name of an agent, a task or a run. ``option`` is shown before it."""
    for problem in name_problems(name, option):
        raise WrongUsage(f"{option} {name!r} {problem.message}")


def read_answers(path: Path) -> list[tuple[str, str]]:
    """Return (name, text) of a file, of standard input, or of every ``answer_<k>`` in a folder, and report the others.

    A file can be Markdown, a document (.docx, .html, .pdf) or the reply of a model provider (.json).

    Raises:
        WrongUsage: There are no answers, or one cannot be read.
    """
    if not path.is_dir():
        return [(_answer_name(path), read_report_file(path))]
    files: dict[str, Path] = {}
    ignored = []
    listed = (each for each in path.iterdir() if not (is_metadata(each.name) or is_evidence(each.name)))
    for file in sorted(each for each in listed if not each.name.startswith(".")):
        name = with_suffix(_answer_name(file))
        if not is_answer(name):
            ignored.append(file)
        elif name in files:
            raise WrongUsage(f"{files[name]} and {file.name} are the same answer: remove one of them")
        else:
            files[name] = file
    report_ignored(ignored)
    if not files:
        raise WrongUsage(f"no {ANSWERS} files in {path}")
    return [
        (name, read_report_file(file)) for name, file in sorted(files.items(), key=lambda item: natural_key(item[0]))
    ]


def _answer_name(path: Path) -> str:
    """Return the name of the answer in a file: without the suffix if it becomes Markdown."""
    if path == STDIN:
        return "answer_1"
    return path.stem if path.suffix.lower() in {*DOCUMENT_SUFFIXES, ".json"} else path.name


def read_report_file(path: Path) -> str:
    """Return the Markdown of a file or of standard input (``-``), and print the warnings about it.

    Raises:
        WrongUsage: It cannot be read or converted.
    """
    name = STDIN_NAME if path == STDIN else str(path)
    try:
        with open_input(path) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"cannot read {name}: {error.strerror}") from error
    try:
        report = event_loop.run(read_report(name, data))
    except InvalidSubmission as error:
        [problem, *_] = error.problems
        if problem.code is ProblemCode.BAD_REPLY:
            hint = f"{problem.path.removeprefix(name).lstrip('.')} {problem.message}".strip()
            raise WrongUsage(f"{name}: invalid reply", hint=hint) from error
        raise WrongUsage(f"{problem.path} {problem.message}") from error
    for warning in report.warnings:
        stderr_console().print_line(f"warning: {warning}")
    return report.text


def open_input(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file, or standard input for ``-``. Says so if a person has to type the input."""
    if path != STDIN:
        return path.open("rb")
    if sys.stdin.isatty():
        stderr_console().print_line("reading standard input; end it with Ctrl-D")
    return nullcontext(sys.stdin.buffer)


@contextmanager
def input_file(path: Path) -> Iterator[Path]:
    """Yield a file that can be read several times: ``path``, or a temporary copy of standard input for ``-``."""
    if path != STDIN:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder, open_input(path) as source:
        copy = Path(folder, STDIN_NAME.replace(" ", "-"))
        with copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        yield copy


def supplied_records(path: Path, answer_name: str) -> list[dict[str, Any]]:
    """Return the pages that the agent supplied with an answer in JSON form. ``path`` is its file or folder.

    Raises:
        WrongUsage: Their folder is invalid.
    """
    if path == STDIN:
        return []
    folder = (path if path.is_dir() else path.parent) / evidence_folder(answer_name)
    try:
        return json_records(read_evidence(folder), folder.name)
    except InvalidSubmission as error:
        raise WrongUsage(f"the supplied pages in {folder} are invalid", hint=str(error)) from error


def json_records(records: Iterable[Mapping[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return records of supplied pages in JSON form: PDFs and images as Base64, other bytes as text.

    Raises:
        InvalidSubmission: Bytes are not text. ``path`` is the place of the records in messages.
    """
    return [
        {name: _json_value(name, value, f"{path}.{place}") for name, value in record.items()}
        for place, record in enumerate(records)
    ]


def _json_value(name: str, value: Any, path: str) -> Any:
    if not isinstance(value, bytes):
        return value
    if name in ("pdf", "image"):
        return base64.b64encode(value).decode("ascii")
    return decode_html(value, "") if name == "html" else decode_text(value, f"{path}.{name}")


def read_pages(path: Path) -> dict[str, str]:
    """Return the texts in a JSON file by URL.

    Raises:
        WrongUsage: The file cannot be read, or is not a JSON object of texts.
    """
    try:
        pages = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise WrongUsage(f"Cannot read --pages {path}: {error}") from error
    if not isinstance(pages, dict) or not all(isinstance(text, str) for text in pages.values()):
        raise WrongUsage(f"--pages {path}: expected one JSON object that maps URL to text")
    return pages


def read_supplied_pages(path: Path) -> list[UploadedPage]:
    """Return the pages of a file with JSON lines, the value of ``--sources``.

    Raises:
        WrongUsage: The file cannot be read, or a line is invalid.
    """
    try:
        with path.open("rb") as file:
            return read_supplied(file, supplier=path.name, now=datetime.now(UTC))
    except OSError as error:
        raise WrongUsage(f"Cannot read --sources {path}: {error.strerror}") from error
    except SuppliedRejected as error:
        raise WrongUsage(f"--sources {path}: {error}") from error


def ignored_message(path: Path) -> str:
    """Say why a file is not judged."""
    is_loose = is_answer(path.name)
    why = "it belongs into a folder with the name of its task" if is_loose else "it is not an answer_<k>.md"
    return f"{path} is ignored: {why}"


def report_ignored(paths: Iterable[Path]) -> None:
    """Warn on stderr about files that are not judged."""
    for path in paths:
        stderr_console().print_line(f"warning: {ignored_message(path)}")
