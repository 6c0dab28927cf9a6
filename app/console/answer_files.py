"""Readers for answer files and page texts given by path, and the report of files that are not answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from answers.errors import InvalidSubmission
from answers.provider_replies import answer_from_reply
from answers.public_layout import ANSWERS, is_answer, other_files
from answers.submission import name_problems
from app.console.errors import WrongUsage
from app.console.streams import stderr_console
from cache.sources.supplied import SuppliedRejected, read_supplied
from cache.sources.uploads import UploadedPage


def check_name(name: str, option: str) -> None:
    """Raise WrongUsage if ``name`` cannot be the name of an agent, a task or a run. ``option`` is shown before it."""
    for problem in name_problems(name, option):
        raise WrongUsage(f"{option} {name!r} {problem.message}")


def read_answers(path: Path) -> list[tuple[str, str]]:
    """Return (name, text) of a file with any name, or of every ``answer_<k>.md`` in a folder, and report the others.

    A file with the suffix ``.json`` is the reply of a model provider.

    Raises:
        WrongUsage: There are no answers, or one cannot be read as UTF-8 or as a reply.
    """
    if path.is_dir():
        report_ignored(other_files(path))
        files = sorted(file for file in path.iterdir() if is_answer(file.name))
        if not files:
            raise WrongUsage(f"no {ANSWERS} files in {path}")
    elif path.is_file():
        files = [path]
    else:
        raise WrongUsage(f"no such file or folder: {path}")
    try:
        if path.suffix.lower() == ".json" and path.is_file():
            return [(path.stem, text_of_reply(path))]
        return [(file.name, file.read_text(encoding="utf-8-sig")) for file in files]
    except UnicodeDecodeError as error:
        raise WrongUsage(f"an answer in {path} is not UTF-8: {error}") from error
    except OSError as error:
        raise WrongUsage(f"cannot read {error.filename}: {error.strerror}") from error


def text_of_reply(path: Path) -> str:
    """Return the Markdown of a reply, and report the citations that cannot be checked."""
    try:
        reply = json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise WrongUsage(f"{path} is not JSON: {error}") from error
    try:
        answer = answer_from_reply(reply)
    except InvalidSubmission as error:
        raise WrongUsage(f"{path}: invalid reply", hint=str(error).removeprefix(": ")) from error
    unchecked = sorted({one.title or "(no title)" for one in answer.citations if one.url is None})
    if unchecked:
        message = f"warning: cited sources that are no web pages get no link: {', '.join(unchecked)}"
        stderr_console().print_line(message)
    return answer.text


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
