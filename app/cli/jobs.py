"""``assay admin jobs``: the jobs of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

import typer

from app.cli.submit import follow
from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import WrongUsage, reject_given
from app.console.not_judged import print_not_judged
from app.console.streams import print_json, stdout_console
from app.console.tables import plain_table
from assay_client import Job

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    agent: Annotated[str | None, typer.Option(help="List only jobs of this agent.")] = None
    task: Annotated[str | None, typer.Option(help="List only jobs of this task.")] = None
    status: Annotated[Status | None, typer.Option(help="List only jobs with this status.")] = None
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of listed jobs, newest first.")] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Queue jobs again that have ended or are paused. Finished verdicts are reused."),
    ] = False
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the jobs.")] = False


def jobs(
    context: typer.Context,
    job_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs (default: list the jobs).")
    ] = None,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the jobs and print their scores, as `submit --wait` does.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="With --wait: stop waiting after this many seconds.")] = None,
    change: _Change,
    selection: _Selection,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """List, show, wait for, retry or cancel jobs.

    Of one job, the result and the reasons why claims were not judged are shown too.
    """
    if not job_ids:
        reject_given(context, "requires the ID of a job", "--wait", "--timeout", "--retry", "--cancel")
        _list(selection, url, as_json=as_json)
        return
    reject_given(context, "cannot be used with the ID of a job", "--agent", "--task", "--status", "--limit")
    if wait + change.retry + change.cancel > 1:
        raise WrongUsage("use only one of --wait, --retry and --cancel")
    if not wait:
        reject_given(context, "requires --wait", "--timeout")
    if change.retry or change.cancel:
        _change(job_ids, url, retry=change.retry, as_json=as_json)
    elif wait:
        with connect(url) as client:
            labels = {job["id"]: f"{job['task_id']} {job['answer']}" for job in map(client.get_job, job_ids)}
            follow(client, labels, timeout_s=timeout, as_json=as_json)
    elif len(job_ids) == 1:
        _show(job_ids[0], url, as_json=as_json)
    else:
        raise WrongUsage("several jobs require --wait, --retry or --cancel", hint="To show a job, give one ID.")


def _list(selection: _Selection, url: str, *, as_json: bool) -> None:
    with connect(url) as client:
        jobs = client.list_jobs(status=selection.status, agent=selection.agent, task_id=selection.task)
        listed = list(islice(jobs, selection.limit))
    if as_json:
        print_json({"items": listed})
        return
    table = plain_table("job", "agent", "task", "answer", "status")
    for job in listed:
        state = job["error"]["code"] if job["error"] else job["stage"]
        shown = f"{job['status']} {state}" if state else job["status"]
        table.add_row(job["id"], job["agent"], job["task_id"], job["answer"], shown)
    stdout_console().print(table if listed else "no jobs")


def _show(job_id: str, url: str, *, as_json: bool) -> None:
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
    print_not_judged([result], again=f"Then judge again what is open: assay admin jobs --retry {job.id}")


def _cell(value: object) -> str:
    """Format the value of a field. The traceback of an error follows the table."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {each}" for name, each in value.items() if each is not None and name != "traceback")
    return str(value)


def _change(job_ids: Sequence[str], url: str, *, retry: bool, as_json: bool) -> None:
    """Retry or cancel jobs."""
    changed = []
    with connect(url) as client:
        for job_id in job_ids:
            changed.append(client.retry_job(job_id) if retry else client.cancel_job(job_id))
            if not as_json:
                stdout_console().print(f"{job_id} is {'queued' if retry else 'cancelled'}")
    if as_json:
        print_json({"items": changed})
