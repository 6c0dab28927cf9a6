"""Results to export: the newest result of each answer of an agent, from the database or from a result folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers.submission import NAME_PATTERN
from app.engine.result_folder import ResultUnreadable
from app.features.bundles.errors import NothingToBundle
from app.features.bundles.recorded_roots import without_roots
from app.storage.database import Database
from app.storage.overrides import Override, overrides_of
from app.storage.results import answers_of, judged_text
from judges import result_files


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResult:
    """Result of one answer.

    ``body`` is the stored result byte for byte. ``answer`` is None if the answer is no longer stored. ``overrides`` are
    in chronological order. ``file`` is the result file, if the result came from a folder.
    """

    id: str
    task_id: str
    answer_name: str
    body: bytes
    answer: bytes | None
    overrides: Sequence[Override] = ()
    file: Path | None = None

    @property
    def result(self) -> dict[str, Any]:
        """Parsed result. Parsed on each access, so that memory does not grow with the number of results."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedAnswer:
    """Answer without a result, with the error of its last attempt."""

    task_id: str
    answer_name: str
    error_code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResults:
    """Results of an agent, ordered by task and answer."""

    agent: str
    judged: tuple[SourceResult, ...]
    unjudged: tuple[UnjudgedAnswer, ...] = ()


async def from_database(database: Database, agent: str, tasks: Collection[str]) -> AgentResults:
    """Return the results that the service has stored. An empty ``tasks`` selects all tasks.

    Raises:
        NothingToBundle: there is no matching result.
        DatabaseUnavailable: the database cannot be read.
    """
    judged: list[SourceResult] = []
    unjudged: list[UnjudgedAnswer] = []
    async with database.begin() as connection:
        for row in await answers_of(connection, agent):
            if tasks and row.task_id not in tasks:
                continue
            if row.body is None:
                unjudged.append(
                    UnjudgedAnswer(task_id=row.task_id, answer_name=row.answer_name, error_code=row.error_code)
                )
                continue
            result_id = str(json.loads(row.body)["id"])
            text = await judged_text(connection, result_id)
            overrides = await overrides_of(connection, [result_id])
            judged.append(
                SourceResult(
                    id=result_id,
                    task_id=row.task_id,
                    answer_name=row.answer_name,
                    body=row.body.encode("utf-8", "replace"),
                    answer=None if text is None else text.encode("utf-8", "replace"),
                    overrides=overrides.get(result_id, ()),
                )
            )
    return _sorted_results(agent, judged, unjudged, tasks)


async def from_folder(out: Path, agent: str, tasks: Collection[str]) -> AgentResults:
    """Return the results that ``assay evaluate`` wrote to ``out``.

    Raises:
        NothingToBundle: there is no matching result.
        ResultUnreadable: a result file cannot be read or is not a JSON object.
    """
    judged = await asyncio.to_thread(_read_folder, out, agent, tasks)
    return _sorted_results(agent, judged, [], tasks)


def _read_folder(out: Path, agent: str, tasks: Collection[str]) -> list[SourceResult]:
    results = []
    for task_id in result_files.judged_tasks(out, agent):
        if tasks and task_id not in tasks:
            continue
        for folder in result_files.judged_answers(out, agent, task_id):
            path = folder.newest_result()
            if path is not None:
                results.append(_read_result(folder, path))
    return results


def _read_result(folder: result_files.AnswerFolder, path: Path) -> SourceResult:
    try:
        body = without_roots(path.read_bytes())
        result = json.loads(body)
    except (OSError, ValueError) as error:
        raise ResultUnreadable(f"Cannot read the result {path}: {error}") from error
    if not isinstance(result, Mapping):
        raise ResultUnreadable(f"{path} is not a result: expected a JSON object")
    stored_id = str(result.get("id") or "")
    return SourceResult(
        id=stored_id if NAME_PATTERN.fullmatch(stored_id) else f"res_{hashlib.sha256(body).hexdigest()[:26]}",
        task_id=folder.task_id,
        answer_name=folder.answer_name,
        body=body,
        answer=_read_or_none(folder.answer_copy),
        file=path,
    )


def _read_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _sorted_results(
    agent: str, judged: list[SourceResult], unjudged: list[UnjudgedAnswer], tasks: Collection[str]
) -> AgentResults:
    if not judged:
        scope = f" for {', '.join(sorted(tasks))}" if tasks else ""
        raise NothingToBundle(f"agent {agent} has no results{scope}")
    ordered = sorted(judged, key=lambda result: (result.task_id, result.answer_name))
    return AgentResults(agent=agent, judged=tuple(ordered), unjudged=tuple(unjudged))
