"""YAML files of tasks, read and checked. Functions block."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import judges.tasks
from judges.loader import JUDGE_SUFFIXES
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task
from judges.yaml_tasks.document import InvalidTask, Problem, read_document
from judges.yaml_tasks.model import TaskNode, task_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """YAML file of a task with its problems. ``nodes`` is empty if the text is not YAML."""

    name: str
    text: str
    sha256: str
    problems: Sequence[Problem]
    nodes: Sequence[TaskNode]


def read_file(folders: Sequence[Path], task_id: str) -> StoredFile | None:
    """Return the YAML file that defines a task; None if there is none, or if a Python file defines the task."""
    for folder in (*folders, Path(judges.tasks.__file__).parent):
        found = [path for suffix in JUDGE_SUFFIXES if (path := folder.expanduser() / f"{task_id}{suffix}").is_file()]
        if not found:
            continue
        if found[-1].suffix != YAML_SUFFIX:
            return None
        try:
            return _checked(found[-1].name, found[-1].read_bytes())
        except OSError:
            return None
    return None


def _checked(name: str, data: bytes) -> StoredFile:
    text = data.decode("utf-8-sig", "replace")
    problems: Sequence[Problem] = ()
    nodes: Sequence[TaskNode] = ()
    try:
        nodes = task_nodes(read_document(text, name))
        compile_task(text, name)
    except InvalidTask as error:
        problems = error.problems
    digest = hashlib.sha256(data).hexdigest()
    return StoredFile(name=name, text=text, sha256=digest, problems=problems, nodes=nodes)
