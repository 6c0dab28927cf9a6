"""Reader for a result folder of ``assay evaluate``: results of an agent, and answers that ended in an error."""

from __future__ import annotations

import json
from pathlib import Path

from app.engine.result_folder import ResultUnreadable, read_outcomes
from app.summary import AnswerOutcome
from judges import result_files


def read_attempts(out: Path, agent: str) -> list[AnswerOutcome]:
    """Return every attempted answer of an agent. Answers without a result come from the summary file of the agent.

    Raises:
        ResultUnreadable: a result or the summary cannot be read.
    """
    found = read_outcomes(out, agent)
    known = {(one.task_id, one.answer_name) for one in found}
    failed = (one for one in _without_result(result_files.agent_folder(out, agent) / result_files.AGENT_SUMMARY))
    return [*found, *(one for one in failed if (one.task_id, one.answer_name) not in known)]


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
