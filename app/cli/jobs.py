"""``assay jobs`` and ``assay results``: list the jobs and results of a server."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app.cli.usage import usage
from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.groups import DefaultGroup
from app.console.streams import print_json, stdout_console
from app.console.tables import plain_table

if TYPE_CHECKING:
    from app.client import Job

AgentOption = Annotated[str | None, typer.Option(help="Only this agent.")]
TaskOption = Annotated[str | None, typer.Option(help="Only this task.")]
LimitOption = Annotated[int, typer.Option(min=1, help="Maximum number of entries, newest first.")]

T = TypeVar("T")


def program() -> typer.Typer:
    """Build the ``results`` command with its subcommands."""
    group = typer.Typer(
        cls=DefaultGroup, help="List results, or print one: `assay results ID`. Export them; show tokens and cost."
    )
    group.command("show")(results)
    group.command("usage")(usage)
    return group


def jobs(
    job_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show one job in full.")] = None,
    agent: AgentOption = None,
    task: TaskOption = None,
    status: Annotated[
        str | None, typer.Option(help="Only this status: queued, running, succeeded, failed or cancelled.")
    ] = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a running server, or show one."""
    with connect(url) as client:
        if job_id is not None:
            _show_job(client.job(job_id), as_json=as_json)
            return
        listed = _first(client.jobs(status=status, agent=agent, task_id=task), limit)
    if as_json:
        print_json({"items": [dict(job.raw) for job in listed]})
        return
    table = plain_table("job", "agent", "task", "answer", "status")
    for job in listed:
        cells = (str(job.raw.get(key) or "") for key in ("agent", "task_id", "answer"))
        state = job.error.code if job.error else job.stage
        table.add_row(job.id, *cells, f"{job.status} {state}" if state else job.status)
    stdout_console().print(table if listed else "no jobs")


def results(
    result_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Print one result in full.")] = None,
    agent: AgentOption = None,
    task: TaskOption = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the results of a running server, or print one."""
    with connect(url) as client:
        if result_id is not None:
            print_json(client.result(result_id))
            return
        listed = _first(client.results(agent=agent, task_id=task), limit)
    if as_json:
        print_json({"items": listed})
        return
    from app.agent_summary import score_of
    from app.console.scorecard import score_text

    table = plain_table("result", "agent", "task", "answer", "score", "status")
    for result in listed:
        cells = (str(result.get(key, "")) for key in ("id", "agent_name", "task_id"))
        answer = str(result.get("answer_name", "")).removesuffix(".md")
        table.add_row(*cells, answer, score_text(score_of(result)), str(result.get("status", "")))
    stdout_console().print(table if listed else "no results")


def _show_job(job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(dict(job.raw))
        return
    console = stdout_console()
    table = plain_table("field", "value")
    for key, value in job.raw.items():
        table.add_row(key, "" if value is None else str(value))
    console.print(table)
    if job.error is not None and job.error.traceback:
        console.print(job.error.traceback, markup=False)


def _first(items: Iterable[T], limit: int) -> list[T]:
    return list(islice(items, limit))
