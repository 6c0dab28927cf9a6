"""Results as folders of the public layout, which ``assay evaluate`` and the public toolkit's own programs read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from answers.submission import Answer, answer_name_problems, name_problems
from app.engine.result_folder import write_result, write_summaries
from app.errors import AppError
from app.features.interop.judged import JudgedResult
from judges.result_files import AnswerFolder


class NotExportable(AppError):
    """A result that has no place in the layout: a name that is no file name, no text, or a second run."""


def write_layout(out: Path, results: Sequence[JudgedResult]) -> int:
    """Write every result with a copy of its answer, and the summaries; returns how many. Blocks on the disk.

    What is there already stays: a result is added beside older ones, and the newest by name counts.

    Raises:
        NotExportable: before anything is written.
    """
    taken: set[tuple[str, str, str]] = set()
    for one in results:
        _check(one)
        place = one.agent, one.task_id, one.answer_name
        if place in taken:
            raise NotExportable(
                f"{'/'.join(place)} was judged in more than one run, and the layout knows none: name one with --run"
            )
        taken.add(place)
    for one in results:
        folder = AnswerFolder(out=out, agent=one.agent, task_id=one.task_id, answer_name=one.answer_name)
        answer = Answer(name=one.answer_name, text=one.answer or "")
        write_result(folder, answer, one.result, finished_at=one.created_at or datetime.now(UTC))
    for agent in sorted({one.agent for one in results}):
        write_summaries(out, agent)
    return len(results)


def _check(one: JudgedResult) -> None:
    """The names come from results of others, and become folders."""
    problems = [
        *name_problems(one.agent, "agent_name"),
        *name_problems(one.task_id, "task_id"),
        *answer_name_problems(one.answer_name, "answer_name"),
    ]
    if problems:
        raise NotExportable(f"a result has a name that can be no folder: {problems[0].path} {problems[0].message}")
    if one.answer is None:
        raise NotExportable(f"the text of {one.agent}/{one.task_id}/{one.answer_name} is not at hand")
