"""Summaries and judged answers for commands: from a running server, or from the result files of ``assay evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.connection import connect
from app.console.errors import WrongUsage

if TYPE_CHECKING:
    from app.agent_summary import AnswerOutcome


def load_summary(agent: str, *, run: str | None, folder: Path | None, url: str) -> dict[str, Any]:
    """Return the summary of an agent from a server or from result files.

    Raises:
        WrongUsage: ``run`` is given with result files, or the agent has no judged answer.
        ToolFailed: the server does not answer.
    """
    if folder is None:
        with connect(url) as client:
            return client.summary(agent, run=run)
    from app.agent_summary import full_summary

    if run is not None:
        raise WrongUsage(
            "--run cannot be used with --results: result files have no runs", hint="Leave out one of them."
        )
    return full_summary(agent, outcomes_in_folder(folder / agent))


def outcomes_in_folder(folder: Path) -> Sequence[AnswerOutcome]:
    """Return the judged answers below ``OUT/AGENT``.

    Raises:
        WrongUsage: there is none.
    """
    from app.engine.result_folder import read_attempts

    outcomes = read_attempts(folder.parent, folder.name)
    if not outcomes:
        raise WrongUsage(
            f"{folder}: contains no judged answer",
            hint="Give the folder of an agent below --out of `assay evaluate`, for example eval_results/my-agent",
        )
    return outcomes
