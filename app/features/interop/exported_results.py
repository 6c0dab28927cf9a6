"""Results to export, read from a result folder or from a running server, and written as such a folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from answers.public_layout import natural_key
from answers.submission import Answer, answer_name_problems, name_problems, with_suffix
from app.engine.result_folder import newest_result, write_result, write_summaries
from app.errors import AppError
from assay_client import Client
from judges.result import STAMP_FORMAT, AnswerFolder, judged_folders


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
    for folder in judged_folders(out, agent, task_ids):
        path, result = folder.newest_result(), newest_result(folder)
        if path is not None and result is not None:
            # Results of the public toolkit contain neither task nor agent. The folder names do.
            names = {"task_id": folder.task_id, "agent_name": agent, "answer_name": folder.answer_name}
            created_at = _parse_stamp(path.name)
            results.append(
                ExportedResult(result={**names, **result}, answer=_text(folder.answer_copy), created_at=created_at)
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


class NotExportable(AppError):
    """A result does not fit the layout: invalid file name, missing answer text, or several runs."""


def write_layout(out: Path, results: Sequence[ExportedResult]) -> int:
    """Write every result with its answer, and the summaries. Return the number of results. Blocks on the disk.

    Existing results are not replaced. A new result is added next to them, and the newest by name counts.

    Raises:
        NotExportable: a result does not fit the layout. Nothing is written.
    """
    used: set[tuple[str, str, str]] = set()
    for exported in results:
        _check(exported)
        key = exported.agent, exported.task_id, exported.answer_name
        if key in used:
            raise NotExportable(
                f"{'/'.join(key)} was judged in several runs, but the layout has no runs: select one with --run"
            )
        used.add(key)
    for exported in results:
        folder = AnswerFolder(out=out, agent=exported.agent, task_id=exported.task_id, answer_name=exported.answer_name)
        answer = Answer(name=exported.answer_name, text=exported.answer or "")
        write_result(folder, answer, exported.result, finished_at=exported.created_at or datetime.now(UTC))
    for agent in sorted({exported.agent for exported in results}):
        write_summaries(out, agent)
    return len(results)


def _check(exported: ExportedResult) -> None:
    """Refuse results whose names cannot be folder names: results may come from untrusted sources."""
    problems = [
        *name_problems(exported.agent, "agent_name"),
        *name_problems(exported.task_id, "task_id"),
        *answer_name_problems(exported.answer_name, "answer_name"),
    ]
    if problems:
        raise NotExportable(
            f"a result has a name that cannot be a folder name: {problems[0].path} {problems[0].message}"
        )
    if exported.answer is None:
        raise NotExportable(f"the text of {exported.agent}/{exported.task_id}/{exported.answer_name} is not available")
