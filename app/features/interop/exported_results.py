"""Results to export, read from a result folder or from a running server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from answers.public_layout import natural_key
from answers.submission import with_suffix
from app.engine.result_folder import newest_result
from assay_client import Client
from judges.result import STAMP_FORMAT, judged_answers, judged_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedResult:
    """Result with data that it does not contain: the answer text, its creation time and its run.

    ``answer`` is None if the text is not available.
    """

    result: Mapping[str, Any]
    answer: str | None = None
    created_at: datetime | None = None
    run: str | None = None

    @property
    def agent(self) -> str:
        return str(self.result.get("agent_name") or "")

    @property
    def task_id(self) -> str:
        return str(self.result.get("task_id") or "")

    @property
    def answer_name(self) -> str:
        return with_suffix(str(self.result.get("answer_name") or "answer"))


def from_folder(out: Path, agent: str, task_ids: Collection[str] = ()) -> list[ExportedResult]:
    """Return the newest result of every answer of an agent in a result folder. Blocks on the disk.

    Raises:
        ResultUnreadable: a result cannot be read.
    """
    results = []
    for task_id in judged_tasks(out, agent):
        if task_ids and task_id not in task_ids:
            continue
        for folder in judged_answers(out, agent, task_id):
            path, result = folder.newest_result(), newest_result(folder)
            if path is None or result is None:
                continue
            # Results of the public toolkit contain neither task nor agent. The folder names do.
            result_with_names = {"task_id": task_id, "agent_name": agent, "answer_name": folder.answer_name, **result}
            results.append(
                ExportedResult(
                    result=result_with_names, answer=_text(folder.answer_copy), created_at=_parse_stamp(path.name)
                )
            )
    return sorted_results(results)


def from_server(
    client: Client, agent: str, task_ids: Collection[str] = (), *, run: str | None = None
) -> list[ExportedResult]:
    """Return the newest result of every answer of an agent on a server, per run."""
    newest: dict[tuple[str, str, str | None], Mapping[str, Any]] = {}
    for origin in client.list_agent_history(agent):
        key = str(origin["task_id"]), str(origin["answer_name"]), origin.get("run")
        if (not task_ids or key[0] in task_ids) and (run is None or key[2] == run):
            newest.setdefault(key, origin)  # newest first
    return sorted_results(
        ExportedResult(
            result=client.get_result(str(origin["result_id"])),
            answer=client.get_result_answer(str(origin["result_id"])),
            created_at=datetime.fromisoformat(str(origin["created_at"])),
            run=origin.get("run"),
        )
        for origin in newest.values()
    )


def sorted_results(results: Iterable[ExportedResult]) -> list[ExportedResult]:
    """Sort by task, run and answer, with ``answer_2`` before ``answer_10``."""
    return sorted(results, key=lambda result: (result.task_id, result.run or "", natural_key(result.answer_name)))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _parse_stamp(name: str) -> datetime | None:
    """Return the time in the name of a result file (local time)."""
    try:
        return datetime.strptime(name[:15], STAMP_FORMAT).astimezone()
    except ValueError:
        return None
