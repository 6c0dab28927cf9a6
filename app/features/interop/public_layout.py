"""Export of results as folders of the public layout, which ``assay evaluate`` and the public toolkit read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from answers.submission import Answer, answer_name_problems, name_problems
from app.engine.result_folder import write_result, write_summaries
from app.errors import AppError
from app.features.interop.exported_results import ExportedResult
from judges.result import AnswerFolder


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
