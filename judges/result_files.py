"""Names and paths of result files in the public folder layout, shared by ``assay evaluate`` and the compat package.

A result is stored at ``<out>/<agent>/<task_id>/answer_<k>/results/<YYYYmmdd_HHMMSS>_answer_<k>.md.json``. A copy of the
answer is stored in ``answer_<k>``. The newest result of an answer is the one whose name sorts last.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cache.atomic_files import write_atomic

STAMP_FORMAT = "%Y%m%d_%H%M%S"
DEBUG_MARK = "_debug"
TASK_SUMMARY = "summary.json"
AGENT_SUMMARY = "summary.json"
MERGED_RESULTS = "all_results.json"


def agent_folder(out: Path, agent: str) -> Path:
    return out / agent


def task_folder(out: Path, agent: str, task_id: str) -> Path:
    return out / agent / task_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFolder:
    """Folder of one answer. ``answer_name`` ends in ``.md``."""

    out: Path
    agent: str
    task_id: str
    answer_name: str

    @property
    def path(self) -> Path:
        return task_folder(self.out, self.agent, self.task_id) / self.answer_name.removesuffix(".md")

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def answer_copy(self) -> Path:
        return self.path / self.answer_name

    def result_path(self, at: datetime, *, debug: bool = False) -> Path:
        """Return the path of a result that finished at ``at``."""
        mark = DEBUG_MARK if debug else ""
        return self.results / f"{at.strftime(STAMP_FORMAT)}_{self.answer_name}{mark}.json"

    def free_result_path(self, finished_at: datetime, *, debug: bool = False) -> Path:
        """Like ``result_path``, but advance by one second while the path exists."""
        while (path := self.result_path(finished_at, debug=debug)).exists():
            finished_at += timedelta(seconds=1)
        return path

    def newest_result(self) -> Path | None:
        """Return the newest result by name, without results of self-debug runs."""
        if not self.results.is_dir():
            return None
        ending = f"_{self.answer_name}.json"
        return max((path for path in self.results.iterdir() if path.name.endswith(ending)), default=None)


def judged_tasks(out: Path, agent: str) -> list[str]:
    """Return the tasks for which the agent has a folder, sorted."""
    return _folders(agent_folder(out, agent))


def judged_answers(out: Path, agent: str, task_id: str) -> list[AnswerFolder]:
    """Return the answers of one task that have a result, sorted by name."""
    folders = [
        AnswerFolder(out=out, agent=agent, task_id=task_id, answer_name=f"{name}.md")
        for name in _folders(task_folder(out, agent, task_id))
    ]
    return sorted((folder for folder in folders if folder.newest_result() is not None), key=lambda one: one.answer_name)


def write_json(path: Path, document: Any) -> None:
    """Write JSON. Values that JSON does not support are converted with ``str``; lone surrogates become ``?``."""
    text = json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n"
    write_atomic(path, text.encode("utf-8", errors="replace"))


def _folders(parent: Path) -> list[str]:
    if not parent.is_dir():
        return []
    return sorted(path.name for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))
