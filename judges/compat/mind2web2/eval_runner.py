"""Evaluation of the answers of one task in the public folder layout, and its summaries."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judges.agent_figures import ScoredAnswer, Summary, public_summary, task_summary
from judges.gc_tuning import raised_gc_thresholds
from judges.registry import Judge, JudgeKind
from judges.result import (
    AGENT_SUMMARY,
    FAILURE_FILE,
    MERGED_RESULTS,
    TASK_SUMMARY,
    AnswerFolder,
    agent_folder,
    judged_answers,
    judged_tasks,
    task_folder,
    write_json,
)
from mind2web2.answer_run import AnswerEvaluation, AnswerOutcome
from mind2web2.browser_managers import shared_manager
from mind2web2.environment import model_name
from mind2web2.evaluator_base import preparer_of_this_loop
from mind2web2.llm_client.judge import JudgeConfig
from mind2web2.results import load_latest_result, read_object, words_of
from mind2web2.semaphores import DualSemaphore
from mind2web2.submission import AnswerFile, list_answer_files
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import load_eval_script
from mind2web2.utils.logging_setup import log_files

__all__ = [
    "DualSemaphore",
    "ScriptsNotFound",
    "evaluate_task",
    "generate_result_summary",
    "merge_all_results",
    "resolve_scripts_dir",
]

MAX_PAGES = 5
MAX_LLM = 30
_VERSION_DATE = re.compile(r"[0-9]{4}_[0-9]{2}_[0-9]{2}")


class ScriptsNotFound(Exception):
    """There is no folder with task scripts, or not the requested version. The message names folder and solution."""


def resolve_scripts_dir(root: str | Path, version: str | None = None) -> Path:
    """Return the folder of task scripts below ``root``.

    A version is a subfolder with scripts (``.py``). Without ``version``, it is the newest one whose name is a date
    (YYYY_MM_DD), else the only one, else ``root`` itself if it contains scripts.

    Raises:
        ScriptsNotFound: there is no such folder.
    """
    root = Path(root)
    if version is not None:
        if version in ("", ".", "..") or Path(version).name != version or not _has_scripts(root / version):
            raise ScriptsNotFound(
                f"{root / version} contains no task scripts: choose another version "
                f"({', '.join(path.name for path in _script_versions(root)) or 'there is none'})"
            )
        return root / version
    versions = _script_versions(root)
    dated = [path for path in versions if _VERSION_DATE.fullmatch(path.name)]
    if dated:
        return max(dated, key=lambda path: path.name)
    if len(versions) == 1:
        return versions[0]
    if _has_scripts(root):
        return root
    problem = (
        f"contains several versions ({', '.join(path.name for path in versions)})" if versions else "has no scripts"
    )
    raise ScriptsNotFound(f"{root} {problem}: choose a version, or put <task_id>.py files into {root}/YYYY_MM_DD")


def _script_versions(root: Path) -> list[Path]:
    folders = (path for path in root.iterdir() if not path.name.startswith(".")) if root.is_dir() else ()
    return sorted(path for path in folders if _has_scripts(path))


def _has_scripts(folder: Path) -> bool:
    return folder.is_dir() and any(is_script(path) for path in folder.iterdir())


def is_script(path: Path) -> bool:
    """Return whether a file may be a task script, named after its task."""
    return path.suffix == ".py" and not path.name.startswith(("_", ".")) and path.is_file()


async def evaluate_task(
    client: Any,
    task_id: str,
    agent_name: str,
    answer_dir: str | Path,
    cache_dir: str | Path,
    output_dir: str | Path,
    script_path: str | Path,
    dump_cache: bool = True,
    is_self_debug: bool = False,
    overwrite: bool = False,
    max_concurrent_answers: int = 3,
    webpage_semaphore: Any = None,
    llm_semaphore: Any = None,
    *,
    model: str | None = None,
) -> list[dict[str, Any]]:
    """Judge every ``answer_<k>.md`` of ``answer_dir/agent/task``. Return the results in the order of completion.

    Up-to-date results are reused unless ``overwrite`` is set. An answer has no result, but a failure file, if the
    script raises, or if the judge or the harness fails permanently; the other answers continue.

    Args:
        dump_cache: Ignored. Changes of the page cache are saved at once.
        is_self_debug: Mark the results as those of a self-debug run, which are never reused.
        model: Bare model name passed to the script; None for that of the client's judge, else the configured one.

    Raises:
        FileNotFoundError, ImportError, AttributeError, TypeError: the script is invalid; see load_eval_script.
        CacheIndexError: the page cache cannot be read.
    """
    out = Path(output_dir)
    async with shared_manager():
        judged = await judge_answers(
            client,
            list_answer_files(Path(answer_dir) / agent_name / task_id),
            TaskFolders(agent=agent_name, task_id=task_id, cache=Path(cache_dir), out=out, script=Path(script_path)),
            limits=AnswerLimits(answers=max_concurrent_answers, pages=webpage_semaphore, llm=llm_semaphore),
            overwrite=overwrite,
            debug=is_self_debug,
            model=model,
            load_first=True,
        )
    return [outcome.result for outcome in judged if outcome.result is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolders:
    """Names and places of one task of an agent. ``cache`` and ``out`` are the roots."""

    agent: str
    task_id: str
    cache: Path
    out: Path
    script: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """Concurrent answers, and semaphores for page captures and model requests; None for own ones."""

    answers: int
    pages: Any = None
    llm: Any = None


async def judge_answers(
    client: Any,
    answers: Sequence[AnswerFile],
    folders: TaskFolders,
    *,
    limits: AnswerLimits,
    overwrite: bool = False,
    debug: bool = False,
    model: str | None = None,
    logger: logging.Logger | None = None,
    load_first: bool = False,
    finished: Callable[[AnswerOutcome], object] = lambda outcome: None,
) -> list[AnswerOutcome]:
    """Judge answers to one task. Return their outcomes in the order of completion.

    Args:
        logger: Receives the events of the run. None: a log of the task in its ``main_logs``.
        load_first: Raise the errors of ``evaluate_task`` if the script or the page cache cannot be loaded. Otherwise,
            the answers that need them have no result.
        finished: Called with each outcome.
    """
    if not answers:
        return []
    judge = getattr(client, "judge", None)
    main_logs = task_folder(folders.out, folders.agent, folders.task_id) / "main_logs"
    with log_files(main_logs, f"main_{folders.task_id}") if logger is None else nullcontext(logger) as run_logger:
        script = cache(lambda: load_eval_script(folders.script))
        pages = cache(lambda: CacheFileSys(folders.cache / folders.agent / folders.task_id))
        if load_first:
            script(), pages()
        run = AnswerEvaluation(
            script=script,
            judge=Judge(task=folders.task_id, kind=JudgeKind.MIND2WEB2, sha256=_sha256(folders.script)),
            client=client,
            model=model or (judge.model if isinstance(judge, JudgeConfig) else model_name()),
            cache=pages,
            semaphore=DualSemaphore(
                asyncio.Semaphore(MAX_PAGES) if limits.pages is None else limits.pages,
                asyncio.Semaphore(MAX_LLM) if limits.llm is None else limits.llm,
            ),
            logger=run_logger,
            debug=debug,
            overwrite=overwrite,
        )
        slots = asyncio.Semaphore(limits.answers)
        outcomes: list[AnswerOutcome] = []

        async def judge_one(answer: AnswerFile) -> None:
            folder = AnswerFolder(
                out=folders.out, agent=folders.agent, task_id=folders.task_id, answer_name=answer.name
            )
            async with slots:
                outcome = await run.evaluate(folder, answer)
            outcomes.append(outcome)
            finished(outcome)

        with raised_gc_thresholds(), preparer_of_this_loop().judging():
            async with asyncio.TaskGroup() as group:
                for answer in answers:
                    group.create_task(judge_one(answer))
        return outcomes


def generate_result_summary(output_dir: str | Path, agent_name: str) -> Summary | None:
    """Write an agent's summary to ``<out>/<agent>/summary.json`` and return it; None if there are no results.

    It has the figures of February. Answers without a result are counted and listed in additional keys, and do not
    affect averages.
    """
    out = Path(output_dir)
    scored: list[ScoredAnswer] = []
    failed: list[Summary] = []
    for task_id in judged_tasks(out, agent_name):
        for entry in _entries(out, agent_name, task_id):
            name = entry["answer_name"]
            words = words_of(AnswerFolder(out=out, agent=agent_name, task_id=task_id, answer_name=name))
            scored.append(ScoredAnswer(task_id=task_id, answer_name=name, score=float(entry["score"]), words=words))
        failed += [{"task_id": task_id} | note for note in _failures(task_folder(out, agent_name, task_id))]
    if not scored:
        return None
    summary = public_summary(agent_name, scored) | {"num_without_result": len(failed), "without_result": failed}
    write_json(agent_folder(out, agent_name) / AGENT_SUMMARY, summary)
    return summary


def merge_all_results(output_dir: str | Path) -> dict[str, dict[str, list[Summary]]]:
    """Return the scores of all answers by task and agent, and write them to ``<out>/all_results.json``."""
    out = Path(output_dir)
    agents = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    merged: dict[str, dict[str, list[Summary]]] = {}
    for agent in agents:
        for task_id in judged_tasks(out, agent):
            if entries := _entries(out, agent, task_id):
                merged.setdefault(task_id, {})[agent] = entries
    merged = dict(sorted(merged.items()))
    write_json(out / MERGED_RESULTS, merged)
    return merged


def _sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).expanduser().read_bytes()).hexdigest()


def _entries(out: Path, agent: str, task_id: str) -> list[Summary]:
    """Return name, score and success of each answer with a result.

    A folder of February without results has them in a ``summary.json``; it is not written any more.
    """
    folders = judged_answers(out, agent, task_id)
    results = {folder.answer_name: load_latest_result(folder.path) for folder in folders}
    scores = {name: float(result.get("final_score") or 0.0) for name, result in results.items() if result is not None}
    if scores:
        return task_summary(scores)
    try:
        path = task_folder(out, agent, task_id) / TASK_SUMMARY
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return entries if isinstance(entries, list) else []


def _failures(task_folder: Path) -> Iterator[Summary]:
    """Return the failure notes of answers without a result."""
    for path in sorted(task_folder.glob(f"*/{FAILURE_FILE}")):
        note = read_object(path)
        if note is not None:
            yield {name: note[name] for name in ("answer_name", "error") if name in note}
