"""Evaluation of the answers of one task in the public folder layout, and its summaries."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judges import result_files
from judges.gc_tuning import raised_gc_thresholds
from judges.public_summary import ScoredAnswer, Summary, agent_summary, merge, task_summary, word_count
from judges.result_files import AnswerFolder, write_json
from mind2web2.answer_run import FAILURE_FILE, AnswerEvaluation, read_object
from mind2web2.browser_managers import shared_manager
from mind2web2.environment import model_name
from mind2web2.semaphores import DualSemaphore
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.load_eval_script import load_eval_script
from mind2web2.utils.logging_setup import cleanup_logger, create_logger

__all__ = ["DualSemaphore", "evaluate_task", "generate_result_summary", "merge_all_results"]

MAX_PAGES = 5
MAX_LLM = 30


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
    """Judge every ``*.md`` file of ``answer_dir/agent/task``. Return the results in the order of completion.

    Up-to-date results are reused unless ``overwrite`` is set. If the script raises for an answer, the answer has no
    result but a failure file.

    Args:
        dump_cache: Save the index of the page cache.
        model: Bare model name passed to the script; None for the configured one.

    Raises:
        FileNotFoundError, ImportError, AttributeError, TypeError: the script is invalid; see load_eval_script.
    """
    answers = Path(answer_dir) / agent_name / task_id
    if not answers.is_dir():
        return []
    out = Path(output_dir)
    logger, _ = create_logger(
        f"main_{task_id}", result_files.task_folder(out, agent_name, task_id) / "main_logs", enable_console=False
    )
    cache = CacheFileSys(Path(cache_dir) / agent_name / task_id)
    try:
        run = AnswerEvaluation(
            script=load_eval_script(script_path),
            script_sha256=_sha256(script_path),
            client=client,
            model=model or model_name(),
            cache=cache,
            semaphore=DualSemaphore(
                asyncio.Semaphore(MAX_PAGES) if webpage_semaphore is None else webpage_semaphore,
                asyncio.Semaphore(MAX_LLM) if llm_semaphore is None else llm_semaphore,
            ),
            logger=logger,
            debug=is_self_debug,
            overwrite=overwrite,
        )
        judged = await _judge_all(run, out, agent_name, task_id, sorted(answers.glob("*.md")), max_concurrent_answers)
    finally:
        if dump_cache:
            await asyncio.to_thread(cache.save)
        cleanup_logger(logger)
    scores = {answer_name: float(result.get("final_score") or 0.0) for answer_name, result in judged}
    if scores:
        folder = result_files.task_folder(out, agent_name, task_id)
        write_json(folder / result_files.TASK_SUMMARY, task_summary(scores))
    return [result for _, result in judged]


async def _judge_all(
    run: AnswerEvaluation, out: Path, agent_name: str, task_id: str, answers: list[Path], at_once: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return (answer name, result) of every answer that has a result, in the order of completion."""
    slots = asyncio.Semaphore(at_once)
    judged: list[tuple[str, dict[str, Any]]] = []

    async def judge(answer: Path) -> None:
        folder = AnswerFolder(out=out, agent=agent_name, task_id=task_id, answer_name=answer.name)
        async with slots:
            result = await run.judge(folder, answer)
        if result is not None:
            judged.append((answer.name, result))

    with raised_gc_thresholds():
        async with shared_manager(), asyncio.TaskGroup() as group:
            for answer in answers:
                group.create_task(judge(answer))
    return judged


def generate_result_summary(output_dir: str | Path, agent_name: str) -> Summary | None:
    """Write an agent's summary to ``<out>/<agent>/summary.json`` and return it; None if there are no results.

    Answers without a result are counted and listed in additional keys. They do not affect averages.
    """
    out = Path(output_dir)
    scored: list[ScoredAnswer] = []
    failed: list[Summary] = []
    for task_id in result_files.judged_tasks(out, agent_name):
        folder = result_files.task_folder(out, agent_name, task_id)
        for entry in _entries(folder / result_files.TASK_SUMMARY):
            place = AnswerFolder(out=out, agent=agent_name, task_id=task_id, answer_name=entry["answer_name"])
            scored.append(
                ScoredAnswer(
                    task_id=task_id,
                    answer_name=entry["answer_name"],
                    score=float(entry["score"]),
                    words=_words(place.answer_copy),
                )
            )
        failed += [{"task_id": task_id} | note for note in _failures(folder)]
    summary = agent_summary(agent_name, scored)
    if summary is None:
        return None
    summary |= {"num_without_result": len(failed), "without_result": failed}
    write_json(result_files.agent_folder(out, agent_name) / result_files.AGENT_SUMMARY, summary)
    return summary


def merge_all_results(output_dir: str | Path) -> dict[str, dict[str, list[Summary]]]:
    """Return the entries of all task summaries by task and agent, and write them to ``<out>/all_results.json``."""
    out = Path(output_dir)
    agents = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    merged = merge(
        (agent, task_id, entries)
        for agent in agents
        for task_id in result_files.judged_tasks(out, agent)
        if (entries := _entries(result_files.task_folder(out, agent, task_id) / result_files.TASK_SUMMARY))
    )
    write_json(out / result_files.MERGED_RESULTS, merged)
    return merged


def _sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).expanduser().read_bytes()).hexdigest()


def _entries(path: Path) -> list[Summary]:
    """Return the entries of a task summary; none if the file is missing or invalid."""
    try:
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


def _words(answer_copy: Path) -> int:
    try:
        return word_count(answer_copy.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return 0
