"""``assay jobs``, ``results`` and ``summary``: what a server has, as tables or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.cli.connection import URL, JsonOption, UrlOption, connected
from app.cli.console import output, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from app.client import Job

AgentOption = Annotated[str | None, typer.Option(help="Only of this agent.")]
TaskOption = Annotated[str | None, typer.Option(help="Only of this task.")]
LimitOption = Annotated[int, typer.Option(min=1, help="How many at most, newest first.")]

T = TypeVar("T")


def jobs(
    job_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show one job in full.")] = None,
    agent: AgentOption = None,
    task: TaskOption = None,
    status: Annotated[str | None, typer.Option(help="queued, running, succeeded, failed or cancelled.")] = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a running server, or show one."""
    with connected(url) as client:
        if job_id is not None:
            _show_job(client.job(job_id), as_json=as_json)
            return
        found = _first(client.jobs(status=status, agent=agent, task_id=task), limit)
    if as_json:
        print_json({"items": [dict(job.raw) for job in found]})
        return
    table = _table("job", "agent", "task", "answer", "status")
    for job in found:
        named = (str(job.raw.get(key) or "") for key in ("agent", "task_id", "answer"))
        more = job.error.code if job.error else job.stage
        table.add_row(job.id, *named, f"{job.status} {more}" if more else job.status)
    output().print(table if found else "no jobs")


def results(
    result_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Print one result in full.")] = None,
    agent: AgentOption = None,
    task: TaskOption = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the results of a running server, or print one."""
    with connected(url) as client:
        if result_id is not None:
            print_json(client.result(result_id))
            return
        found = _first(client.results(agent=agent, task_id=task), limit)
    if as_json:
        print_json({"items": found})
        return
    from app.cli.scorecard import score_text
    from app.summary import score_of

    table = _table("result", "agent", "task", "answer", "score", "status")
    for result in found:
        named = (str(result.get(key, "")) for key in ("id", "agent_name", "task_id"))
        answer = str(result.get("answer_name", "")).removesuffix(".md")
        table.add_row(*named, answer, score_text(score_of(result)), str(result.get("status", "")))
    output().print(table if found else "no results")


def summary(
    agent: Annotated[str, typer.Option(help="The agent.")],
    out: Annotated[Path | None, typer.Option(help="Read result files of `assay evaluate` here, no server.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Summarise an agent's scores, over all its tasks and runs."""
    if out is None:
        with connected(url) as client:
            found = client.summary(agent)
    else:
        from app.layout import read_outcomes
        from app.summary import agent_summary

        found = agent_summary(agent, read_outcomes(out, agent))
    if as_json:
        print_json(found)
        return
    _print_summary(found)


def _print_summary(found: dict[str, Any]) -> None:
    console = output()
    console.print(f"[bold]{found['agent_name']}[/]: {found['num_tasks']} task(s), {found['num_runs']} run(s)")
    figures = _table("figure", "value", "deviation over runs")
    for name in ("avg_score", "success_rate", "avg_answer_word_count"):
        figures.add_row(name, _number(found.get(name)), _number(found.get(f"{name}_std")))
    for name in sorted(key for key in found if key.startswith("pass_at_")):
        figures.add_row(name, _number(found[name]), "")
    not_judged = found.get("not_judged")
    if isinstance(not_judged, dict):
        figures.add_row("answers not judged", str(not_judged.get("answers")), "")
    console.print(figures)
    tasks = _table("task", "best", "average", "pass")
    for task_id, task in found["tasks"].items():
        tasks.add_row(task_id, _number(task["best_score"]), _number(task["avg_score"]), "yes" if task["pass"] else "no")
    console.print(tasks)


def _show_job(job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(dict(job.raw))
        return
    console = output()
    table = _table("field", "value")
    for key, value in job.raw.items():
        table.add_row(key, "" if value is None else str(value))
    console.print(table)
    if job.error is not None and job.error.traceback:
        console.print(job.error.traceback, markup=False)


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        # Ids are there to be copied: whatever else must break, they do not.
        table.add_column(heading, overflow="fold", no_wrap=heading in ("job", "result", "score", "status"))
    return table


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:g}"


def _first(items: Iterable[T], limit: int) -> list[T]:
    return list(islice(items, limit))
