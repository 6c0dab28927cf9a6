"""Summaries and judged answers for commands: from a running server, or from the result files of ``assay evaluate``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from app.console.connection import connect
from app.console.errors import WrongUsage
from app.console.streams import counted, suggestion
from app.engine.result_folder import read_attempts
from judges.agent_figures import AnswerOutcome, full_summary

MixJudgesOption: TypeAlias = Annotated[
    bool, typer.Option("--mix-judges", help="Accept scores of different judges in one figure or comparison.")
]


def check_judges(*counts: Mapping[str, int], mix: bool) -> None:
    """Check that all answers have one judge. ``counts`` are numbers of answers by judge.

    Raises:
        WrongUsage: there are several judges, and ``mix`` is false.
    """
    judges = sum(map(Counter, counts), Counter[str]())
    if len(judges) > 1 and not mix:
        listed = ", ".join(f"{name} ({counted(count, 'answer')})" for name, count in judges.most_common())
        raise WrongUsage(
            f"the scores come from different judges: {listed}",
            hint="Judge again with one model (assay results rescore --model), or accept it with --mix-judges.",
        )


def judges_text(document: Mapping[str, Any]) -> str:
    """Return a line that names the judges of a summary or of a side of a comparison."""
    judges = document.get("judges") or {}
    return "judged by " + (
        ", ".join(f"{name} ({counted(count, 'answer')})" for name, count in judges.items()) or "no model yet"
    )


def load_summary(agent: str, *, run: str | None, folder: Path | None, url: str, mix_judges: bool) -> Mapping[str, Any]:
    """Return the summary of an agent from a server or from result files.

    Raises:
        WrongUsage: ``run`` is given with result files, the agent has no judged answer, or it has several judges and
            ``mix_judges`` is false.
        ToolFailed: the server does not answer.
    """
    if folder is None:
        with connect(url) as client:
            summary: Mapping[str, Any] = client.get_agent_summary(agent, run=run, mix_judges=True)
    elif run is not None:
        raise WrongUsage(
            "--run cannot be used with --results: result files have no runs", hint="Leave out one of them."
        )
    else:
        summary = full_summary(agent, outcomes_in_folder(folder / agent))
    check_judges(summary.get("judges") or {}, mix=mix_judges)
    return summary


def outcomes_in_folder(folder: Path) -> Sequence[AnswerOutcome]:
    """Return the judged answers below ``OUT/AGENT``.

    Raises:
        WrongUsage: there is none.
    """
    if not folder.parent.is_dir():
        raise WrongUsage(f"{folder.parent}: no such folder")
    outcomes = read_attempts(folder.parent, folder.name)
    agents = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    if not outcomes and folder.name not in agents and agents:
        raise WrongUsage(f"{folder}: no such folder", hint=suggestion(folder.name, agents))
    if not outcomes:
        raise WrongUsage(
            f"{folder}: contains no judged answer",
            hint="Give the folder of an agent below --out of `assay evaluate`, for example eval_results/my-agent",
        )
    return outcomes
