"""Result folders in the public layout: what ``assay evaluate`` reads before it judges and writes afterwards.

Places and names come from ``judges.result_files``, the arithmetic from ``judges.summary``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from answers.submission import Answer
from app.errors import AppError
from app.summary import AnswerOutcome, agent_summary, scored_answers
from judges import result_files
from judges.result_files import AnswerFolder, write_json, write_whole
from judges.summary import task_summary, word_count

Result = Mapping[str, Any]


class ResultUnreadable(AppError):
    """A result file that is there cannot be read as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a result depends on besides its pages (``app.engine.page_freshness``): reused while none of it changes."""

    answer_sha256: str
    script_sha256: str | None
    model: str
    parameters: Mapping[str, Any] | None = None
    """By role, as results write them; None: not compared."""


def why_again(result: Result, basis: Basis) -> str | None:
    """Why an answer that has this ``result`` must be judged again; None when the result still stands.

    Results of the public toolkit do not say what they rest on and are taken as they are.
    """
    if result.get("status", "complete") != "complete":
        return "its last result is incomplete"
    if result.get("answer_sha256", basis.answer_sha256) != basis.answer_sha256:
        return "the answer changed"
    script = (result.get("judge") or {}).get("script_sha256", basis.script_sha256)
    if script != basis.script_sha256:
        return "the judge changed"
    if result.get("model", basis.model) != basis.model:
        return f"it was judged by {result['model']}"
    asked_with = (result.get("judge") or {}).get("parameters", basis.parameters)
    if basis.parameters is not None and asked_with != basis.parameters:
        return "it was judged with another reasoning effort, temperature or maximum output"
    return None


def newest_result(folder: AnswerFolder, *, damaged_ok: bool = False) -> dict[str, Any] | None:
    """The newest result of an answer, None when it has none; with ``damaged_ok`` a damaged one is none.

    Raises:
        ResultUnreadable: it has one that is no JSON object, or the file system refuses it.
    """
    path = folder.newest_result()
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
        damage = ResultUnreadable(f"{path} holds no result: it is no JSON object")
    except (OSError, ValueError) as error:
        damage = ResultUnreadable(f"{path} cannot be read as a result: {error}")
    if damaged_ok:
        return None
    raise damage


def write_result(folder: AnswerFolder, answer: Answer, result: Result, *, finished_at: datetime) -> Path:
    """Store a result beside a copy of its answer; returns the result's path, whose name is local time."""
    write_whole(folder.answer_copy, answer.text.encode("utf-8"))
    path = folder.free_result_path(finished_at.astimezone())
    write_json(path, result)
    return path


def read_outcomes(out: Path, agent: str) -> list[AnswerOutcome]:
    """Every answer of an agent that has a result, with its newest one.

    Raises:
        ResultUnreadable: see ``newest_result``.
    """
    return [
        AnswerOutcome(
            task_id=task_id,
            answer_name=folder.answer_name,
            words=_words(folder.answer_copy),
            result=newest_result(folder),
        )
        for task_id in result_files.judged_tasks(out, agent)
        for folder in result_files.judged_answers(out, agent, task_id)
    ]


def write_summaries(out: Path, agent: str, failed: Iterable[AnswerOutcome] = ()) -> dict[str, Any]:
    """Write ``summary.json`` of each task that has a result, and of the agent; returns the latter.

    ``failed`` are answers that were tried and have no result: counted and listed, never averaged.
    """
    outcomes = read_outcomes(out, agent)
    known = {(one.task_id, one.answer_name) for one in outcomes}
    summary = agent_summary(agent, [*outcomes, *(one for one in failed if (one.task_id, one.answer_name) not in known)])
    by_task: dict[str, dict[str, float]] = {}
    for answer in scored_answers(outcomes):
        by_task.setdefault(answer.task_id, {})[answer.answer_name] = answer.score
    for task_id, scores in by_task.items():
        folder = result_files.task_folder(out, agent, task_id)
        write_json(folder / result_files.TASK_SUMMARY, task_summary(scores))
    write_json(result_files.agent_folder(out, agent) / result_files.AGENT_SUMMARY, summary)
    return summary


def _words(answer_copy: Path) -> int:
    try:
        return word_count(answer_copy.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return 0
