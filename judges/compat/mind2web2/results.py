"""Result files of judged answers in the public folder layout, and what a stored result depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from judges import result
from judges.result import SCORING_VERSION, AnswerFolder, is_stamp, newest_result_file, result_name
from mind2web2.config import EvaluatorConfig
from mind2web2.environment import value_of
from mind2web2.llm_client.judge import JudgeConfig, current_scope

__all__ = [
    "EVAL_DATE_VARIABLE",
    "SCORING_VERSION",
    "answer_output_dir",
    "eval_date",
    "latest_result_file",
    "load_latest_result",
    "result_file_name",
    "supersede_results",
]

UNKNOWN_AGENT: Final = "unknown_agent"
UNKNOWN_ANSWER: Final = "unknown_answer"
"""Names in the result of a script that passes none to ``initialize``."""
EVAL_DATE_VARIABLE: Final = "MIND2WEB2_EVAL_DATE"
"""Environment variable with the date that date-dependent task scripts use instead of today (YYYY-MM-DD)."""


def answer_output_dir(output_dir: str | Path, agent_name: str, task_id: str, answer_name: str) -> Path:
    """Return the folder of an answer's result. ``answer_name`` is ``answer_<k>``, with or without ``.md``.

    >>> answer_output_dir("eval_results", "otter", "bridge", "answer_2.md").as_posix()
    'eval_results/otter/bridge/answer_2'
    """
    return AnswerFolder(out=Path(output_dir), agent=agent_name, task_id=task_id, answer_name=answer_name).path


def result_file_name(stamp: str, answer_name: str) -> str:
    """Return the name of a result file. ``stamp`` has the format ``YYYYmmdd_HHMMSS``.

    >>> result_file_name("20261124_093000", "answer_2.md")
    '20261124_093000_answer_2.md.json'
    """
    if not is_stamp(stamp) and is_stamp(answer_name):
        stamp, answer_name = answer_name, stamp  # callers may pass the answer first
    return result_name(stamp, f"{answer_name.removesuffix('.md')}.md")


def latest_result_file(answer_dir: str | Path) -> Path | None:
    """Return the result with the newest stamp in an answer's folder (or its ``results``), None without a result.

    Superseded results do not count.
    """
    return newest_result_file(_results(answer_dir))


def load_latest_result(answer_dir: str | Path) -> dict[str, Any] | None:
    """Return the content of ``latest_result_file``; None if there is none, or if it is not a JSON object."""
    path = latest_result_file(answer_dir)
    return None if path is None else read_object(path)


def supersede_results(answer_dir: str | Path) -> list[Path]:
    """Move all of an answer's ``results`` to ``results/superseded``. Return the new paths.

    Call it before judging an answer again, so that it has no result if that fails.
    """
    return result.supersede_results(_results(answer_dir))


def run_description(client: Any) -> dict[str, Any]:
    """Return the keys of a result that describe its run. ``client`` is the model client of the script.

    ``judge`` is null if the client sends requests as the script makes them. ``judge_usage`` is that of the answer that
    is being judged.
    """
    judge = getattr(client, "judge", None)
    return {
        "judge": judge.describe() if isinstance(judge, JudgeConfig) else None,
        "judge_usage": current_scope().usage.as_dict(),
        **rules(),
    }


def rules() -> dict[str, Any]:
    """Return the rules that a result was made by: configuration, scoring version and evaluation date.

    Raises:
        ValueError: the date in the environment is invalid.
    """
    return {
        "evaluator_config": EvaluatorConfig().as_dict(),
        "scoring_version": SCORING_VERSION,
        "eval_date": eval_date(),
    }


def eval_date() -> str | None:
    """Return the date that date-dependent task scripts use, None if it is unset and they use today.

    Raises:
        ValueError: the variable is not a date.
    """
    configured = value_of(EVAL_DATE_VARIABLE)
    if configured is not None:
        try:
            date.fromisoformat(configured)
        except ValueError:
            raise ValueError(f"{EVAL_DATE_VARIABLE}={configured!r} is not a date: use YYYY-MM-DD.") from None
    return configured


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file is missing or contains something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_object(value: object) -> Mapping[str, Any]:
    """Return a value of a result file if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def words_of(folder: AnswerFolder) -> int:
    """Return the word count of the copy of an answer beside its results; 0 without a copy."""
    try:
        return len(folder.answer_copy.read_text(encoding="utf-8", errors="replace").split())
    except FileNotFoundError:
        return 0


def _results(answer_dir: str | Path) -> Path:
    folder = Path(answer_dir)
    return folder if folder.name == "results" else folder / "results"
