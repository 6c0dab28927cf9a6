"""Result folders of ``assay evaluate`` in the public layout: reading and writing.

``judges.result`` defines paths and names, ``judges.agent_figures`` the calculations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from answers.submission import Answer
from app.errors import AppError
from cache.atomic_files import write_atomic
from judges.agent_figures import AnswerOutcome, agent_summary, scored_answers, task_summary
from judges.result import (
    AGENT_SUMMARY,
    TASK_SUMMARY,
    AnswerFolder,
    agent_folder,
    judged_folders,
    task_folder,
    write_json,
)
from mind2web2.results import read_object, words_of
from rubrics.tree_json import parameters_of, script_of

Result = Mapping[str, Any]


class ResultUnreadable(AppError):
    """A result file exists but is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInputs:
    """Inputs of a result except its pages (``app.engine.page_freshness``). If one changes, the answer is rejudged."""

    answer_sha256: str
    script_sha256: str | None
    model: str
    parameters: Mapping[str, Any] | None = None
    """Parameters of model requests by role, in the format of results. None: not compared."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Configuration, scoring version and evaluation date, as in results (``mind2web2.results.rules``)."""


def rejudge_reason(result: Result, inputs: ResultInputs) -> str | None:
    """Return why an answer with this ``result`` must be judged again; None if the result is still valid.

    Results of the public toolkit do not record their inputs. They count as valid.
    """
    if result.get("status", "complete") != "complete":
        return "its last result is incomplete"
    if result.get("answer_sha256", inputs.answer_sha256) != inputs.answer_sha256:
        return "the answer changed"
    if script_of(result).get("sha256", inputs.script_sha256) != inputs.script_sha256:
        return "the judge changed"
    if result.get("model", inputs.model) != inputs.model:
        return f"it was judged by {result['model']}"
    asked_with = parameters_of(result)
    if None not in (inputs.parameters, asked_with) and asked_with != inputs.parameters:
        return "the reasoning effort, temperature or maximum output changed"
    changed = [name for name, value in inputs.rules.items() if result.get(name, value) != value]
    if changed:
        return f"{' and '.join(changed)} changed"
    return None


def newest_result(folder: AnswerFolder, *, damaged_ok: bool = False) -> dict[str, Any] | None:
    """Return the newest result of an answer, None if there is none. ``damaged_ok`` returns None for a damaged file.

    Raises:
        ResultUnreadable: The file is not a JSON object or cannot be read.
    """
    path = folder.newest_result()
    result = None if path is None else read_object(path)
    if path is not None and result is None and not damaged_ok:
        raise ResultUnreadable(f"{path} is not a result: expected a JSON object that can be read")
    return result


def write_result(folder: AnswerFolder, answer: Answer, result: Result, *, finished_at: datetime) -> Path:
    """Write a result and a copy of its answer. Return the path of the result, whose name contains the local time."""
    write_atomic(folder.answer_copy, answer.text.encode("utf-8"))
    path = folder.free_result_path(finished_at.astimezone())
    write_json(path, result)
    return path


EVALUATED: Final = "evaluated"
"""Folder in the data folder with the results that a service on it has not stored yet."""


def keep_for_service(
    data_dir: Path, folder: AnswerFolder, answer: Answer, model: str, result: Mapping[str, Any]
) -> None:
    """Leave a result for the service on the same data folder, so that its dashboard shows it. Blocks."""
    kept = {
        "agent": folder.agent,
        "task_id": folder.task_id,
        "answer_name": answer.name,
        "text": answer.text,
        "model": model,
        "result": result,
    }
    write_json(data_dir / EVALUATED / f"{result['id']}.json", kept)


def read_outcomes(out: Path, agent: str) -> list[AnswerOutcome]:
    """Return all answers of an agent that have a result, each with its newest result.

    Raises:
        ResultUnreadable: See ``newest_result``.
    """
    return [
        AnswerOutcome(
            task_id=folder.task_id,
            answer_name=folder.answer_name,
            words=words_of(folder),
            result=newest_result(folder),
        )
        for folder in judged_folders(out, agent)
    ]


def write_summaries(out: Path, agent: str, failed: Iterable[AnswerOutcome] = ()) -> dict[str, Any]:
    """Write the summary of each task with results and of the agent. Return the summary of the agent.

    ``failed`` are answers without a result because judging failed. They are counted and listed, but not averaged.
    """
    outcomes = read_outcomes(out, agent)
    known = {(outcome.task_id, outcome.answer_name) for outcome in outcomes}
    summary = agent_summary(agent, [*outcomes, *(one for one in failed if (one.task_id, one.answer_name) not in known)])
    by_task: dict[str, dict[str, float]] = {}
    for answer in scored_answers(outcomes):
        by_task.setdefault(answer.task_id, {})[answer.answer_name] = answer.score
    for task_id, scores in by_task.items():
        folder = task_folder(out, agent, task_id)
        write_json(folder / TASK_SUMMARY, task_summary(scores))
    write_json(agent_folder(out, agent) / AGENT_SUMMARY, summary)
    return summary


def read_attempts(out: Path, agent: str) -> list[AnswerOutcome]:
    """Return every attempted answer of an agent. Answers without a result come from the summary file of the agent.

    Raises:
        ResultUnreadable: a result or the summary cannot be read.
    """
    outcomes = read_outcomes(out, agent)
    known = {(one.task_id, one.answer_name) for one in outcomes}
    failed = (one for one in _without_result(agent_folder(out, agent) / AGENT_SUMMARY))
    return [*outcomes, *(one for one in failed if (one.task_id, one.answer_name) not in known)]


def _without_result(path: Path) -> list[AnswerOutcome]:
    """Return the answers that a summary lists as failed. Summaries of the public toolkit list none."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8")).get("without_result") or []
        return [
            AnswerOutcome(
                task_id=str(one["task_id"]), answer_name=str(one["answer_name"]), error_code=one.get("error_code")
            )
            for one in listed
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultUnreadable(f"Cannot read the agent summary {path}: {error!r}") from error
