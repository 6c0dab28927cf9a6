"""YAML files of tasks: reading, checking, and saving without losing a change of somebody else. Functions block."""

from __future__ import annotations

import difflib
import fcntl
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import judges.tasks
from cache.atomic_files import atomic_path
from judges.loader import JUDGE_SUFFIXES
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task
from judges.yaml_tasks.document import InvalidTask, Problem, read_document
from judges.yaml_tasks.editing import TaskNode, Value, field_of, head_values, task_nodes


class FileChanged(Exception):
    """The file on disk is not the version that was edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """YAML file of a task. ``read_only`` is the reason why it cannot be saved; None if it can."""

    path: Path
    text: str
    sha256: str
    read_only: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedText:
    """Text of a task file with its problems, each with its field, and what can be edited.

    ``head`` are the values of the task itself. ``nodes`` and ``head`` are empty if the text is not YAML.
    """

    sha256: str
    problems: Sequence[tuple[str, Problem]]
    nodes: Sequence[TaskNode] = ()
    head: dict[str, Value] = field(default_factory=dict)


def find_file(folders: Sequence[Path], task_id: str) -> StoredFile | None:
    """Return the YAML file that defines a task; None if there is none, or if a Python file defines the task."""
    shipped = Path(judges.tasks.__file__).parent
    for folder in (*folders, shipped):
        found = [path for suffix in JUDGE_SUFFIXES if (path := folder.expanduser() / f"{task_id}{suffix}").is_file()]
        if not found:
            continue
        if found[-1].suffix != YAML_SUFFIX:
            return None
        path = found[-1].resolve()
        try:
            data = path.read_bytes()
        except OSError:
            return None
        return StoredFile(
            path=path,
            text=data.decode("utf-8-sig", "replace"),
            sha256=digest(data),
            read_only=_read_only(found, data, is_shipped=folder == shipped),
        )
    return None


def _read_only(found: Sequence[Path], data: bytes, *, is_shipped: bool) -> str | None:
    if is_shipped:
        return "The task is part of the program. Copy its file to a folder of ASSAY_JUDGES to change it."
    if len(found) > 1:
        return f"{found[0].name} defines the same task. Remove one of the two files."
    if not os.access(found[-1].resolve().parent, os.W_OK):
        return "The service has no write access to the folder of this task."
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "The file is not UTF-8. Save it as UTF-8 in a text editor."
    return None


def check_text(text: str, name: str) -> CheckedText:
    """Parse and compile the text of a task file."""
    sha256 = digest(text.encode("utf-8", "surrogatepass"))
    try:
        document = read_document(text, name)
    except InvalidTask as error:
        return CheckedText(sha256=sha256, problems=[("", problem) for problem in error.problems])
    problems: Sequence[Problem] = ()
    try:
        compile_task(text, name)
    except InvalidTask as error:
        problems = error.problems
    return CheckedText(
        sha256=sha256,
        problems=[(field_of(document, problem), problem) for problem in problems],
        nodes=task_nodes(document),
        head=head_values(document),
    )


def unified_diff(before: str, after: str, name: str) -> str:
    """Return the changes as a unified diff; "" if the texts are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} (old)", f"{name} (new)", lineterm="")
    return "\n".join(lines)


def save_file(path: Path, text: str, *, base_sha256: str) -> None:
    """Replace a file atomically. ``base_sha256`` is the digest of the version that was edited.

    Raises:
        FileChanged: the file was changed or removed, or is being saved at this moment.
        OSError: it cannot be written.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if digest(path.read_bytes()) != base_sha256:
            raise FileChanged
        old = path.stat()
        with atomic_path(path, synced=True) as draft:
            draft.touch(0o600)
            draft.write_bytes(text.encode("utf-8"))
            draft.chmod(old.st_mode & 0o7777)
            with suppress(PermissionError):
                os.chown(draft, old.st_uid, old.st_gid)
    except (BlockingIOError, FileNotFoundError) as error:
        raise FileChanged from error
    finally:
        os.close(folder)


def digest(data: bytes) -> str:
    """Return the SHA-256 as hex digits."""
    return hashlib.sha256(data).hexdigest()
