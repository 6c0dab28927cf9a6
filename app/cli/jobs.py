"""``assay jobs`` and ``assay results``: the jobs and results of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Literal, TypeVar

import typer

from app.cli.usage import usage
from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.groups import DefaultGroup
from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import plain_table

AgentOption = Annotated[str | None, typer.Option(help="Only this agent.")]
TaskOption = Annotated[str | None, typer.Option(help="Only this task.")]
Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
LimitOption = Annotated[int, typer.Option(min=1, help="Maximum number of entries, newest first.")]

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the job.")]
JobArguments = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the jobs.")]
ResultArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the result.")]

T = TypeVar("T")


def jobs_program() -> typer.Typer:
    """Build the ``jobs`` command with its subcommands."""
    group = typer.Typer(cls=DefaultGroup, help="List, show, wait for, retry and cancel jobs of a server.")
    group.command("list")(list_jobs)
    group.command("show")(show_job)
    group.command("wait")(wait)
    group.command("retry")(retry)
    group.command("cancel")(cancel)
    return group


def results_program() -> typer.Typer:
    """Build the ``results`` command with its subcommands."""
    group = typer.Typer(cls=DefaultGroup, help="List, show, export and rescore results; show tokens and cost.")
    group.command("list")(list_results)
    group.command("show")(show_result)
    group.command("usage")(usage)
    return group


def list_jobs(
    agent: AgentOption = None,
    task: TaskOption = None,
    status: Annotated[Status | None, typer.Option(help="Only this status.")] = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a running server."""
    with connect(url) as client:
        listed = _first(client.list_jobs(status=status, agent=agent, task_id=task), limit)
    if as_json:
        print_json({"items": listed})
        return
    table = plain_table("job", "agent", "task", "answer", "status")
    for job in listed:
        state = job["error"]["code"] if job["error"] else job["stage"]
        shown = f"{job['status']} {state}" if state else job["status"]
        table.add_row(job["id"], job["agent"], job["task_id"], job["answer"], shown)
    stdout_console().print(table if listed else "no jobs")


def list_results(
    agent: AgentOption = None,
    task: TaskOption = None,
    limit: LimitOption = 20,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List the results of a running server."""
    with connect(url) as client:
        listed = _first(client.list_results(agent=agent, task_id=task), limit)
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


def show_job(job_id: JobArgument, url: UrlOption = URL, as_json: JsonOption = False) -> None:
    """Show one job, its result, and why claims were not judged."""
    from app.console.not_judged import print_not_judged
    from assay_client import Job

    with connect(url) as client:
        job = Job.from_json(client.get_job(job_id))
        result = None if job.result_id is None or as_json else client.get_result(job.result_id)
    if as_json:
        print_json(dict(job.raw))
        return
    console = stdout_console()
    page = f"jobs/{job.id}" if result is None else f"results/{result['id']}"
    console.print(f"{client.url}/{page}", soft_wrap=True)
    table = plain_table("field", "value")
    for key, value in job.raw.items():
        if value is not None:
            table.add_row(key, _cell(value))
    console.print(table)
    if job.error is not None and job.error.traceback:
        console.print(job.error.traceback, markup=False)
    print_not_judged([result], again=f"Then judge again what is open: assay jobs retry {job.id}")


def _cell(value: object) -> str:
    """Format the value of a field. The traceback of an error follows the table."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None and name != "traceback")
    return str(value)


def wait(
    job_ids: JobArguments,
    timeout: Annotated[float | None, typer.Option(help="Stop waiting after this many seconds.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Wait for jobs and print their scores, as `submit --wait` does."""
    from app.cli.submit import follow

    with connect(url) as client:
        labels = {job["id"]: f"{job['task_id']} {job['answer']}" for job in map(client.get_job, job_ids)}
        follow(client, labels, timeout_s=timeout, as_json=as_json)


def retry(job_ids: JobArguments, url: UrlOption = URL) -> None:
    """Queue jobs again that have ended or are paused. Finished verdicts are reused."""
    with connect(url) as client:
        for job_id in job_ids:
            client.retry_job(job_id)
            stdout_console().print(f"{job_id} is queued")


def cancel(job_ids: JobArguments, url: UrlOption = URL) -> None:
    """Cancel jobs."""
    with connect(url) as client:
        for job_id in job_ids:
            client.cancel_job(job_id)
            stdout_console().print(f"{job_id} is cancelled")


def show_result(result_id: ResultArgument, url: UrlOption = URL, as_json: JsonOption = False) -> None:
    """Print one result: the address of its page, then its JSON. --json prints only the JSON."""
    with connect(url) as client:
        result = client.get_result(result_id)
    if not as_json:
        stderr_console().print(f"{client.url}/results/{result['id']}", soft_wrap=True)
    print_json(result)


def _first(items: Iterable[T], limit: int) -> list[T]:
    return list(islice(items, limit))
