"""Evaluation of the answers of one task in the public folder layout, and its summaries."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judges.agent_figures import ScoredAnswer, Summary, public_summary, task_summary
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
from mind2web2.browser_managers import shared_manager
from mind2web2.evaluation import TaskEvaluation
from mind2web2.results import load_latest_result, read_object, words_of
from mind2web2.semaphores import DualSemaphore
from mind2web2.submission import list_answer_files
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
    answers, out = list_answer_files(Path(answer_dir) / agent_name / task_id), Path(output_dir)
    if not answers:
        return []
    evaluation = TaskEvaluation(
        agent=agent_name,
        task_id=task_id,
        client=client,
        script_path=Path(script_path),
        cache_root=Path(cache_dir),
        out=out,
        semaphore=DualSemaphore(
            asyncio.Semaphore(MAX_PAGES) if webpage_semaphore is None else webpage_semaphore,
            asyncio.Semaphore(MAX_LLM) if llm_semaphore is None else llm_semaphore,
        ),
        max_answers=max_concurrent_answers,
        model=model,
        overwrite=overwrite,
        debug=is_self_debug,
    )
    main_logs = task_folder(out, agent_name, task_id) / "main_logs"
    with log_files(main_logs, f"main_{task_id}") as logger:
        async with shared_manager():
            _ = evaluation.script, evaluation.cache  # raises now if one of them cannot be loaded
            judged = await evaluation.judge_all(answers, logger)
    return [outcome.result for outcome in judged if outcome.result is not None]


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
