"""``assay jobs`` and ``assay results``: the jobs and results of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer

from app.console.connection import URL, JsonOption, ResultsOption, UrlOption, connect
from app.console.groups import DefaultGroup
from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import plain_table


class By(StrEnum):
    """Dimensions by which usage can be grouped."""

    AGENT = "agent"
    TASK = "task"
    MODEL = "model"
    ROLE = "role"


Dimension: TypeAlias = Literal["agent", "task_id", "model", "role"]
_DIMENSIONS: dict[By, Dimension] = {By.AGENT: "agent", By.TASK: "task_id", By.MODEL: "model", By.ROLE: "role"}
_DEFAULT = [By.AGENT, By.TASK, By.MODEL, By.ROLE]
_SUMS = ("calls", "input_tokens", "output_tokens")


def usage(
    by: Annotated[
        list[By] | None, typer.Option("--by", help="Group by this dimension. Repeatable (default: all).")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    folder: ResultsOption = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Show model requests, tokens and cost. Groups are agent, task, model and role."""
    groups = [_DIMENSIONS[one] for one in dict.fromkeys(by or _DEFAULT)]
    if folder is None:
        with connect(url) as client:
            report: Mapping[str, Any] = client.get_usage(by=groups, agent=agent, task_id=task)
    else:
        report = _of_files(folder, groups, agent, task)
    if as_json:
        print_json(report)
    else:
        _print(report, groups)


def _of_files(folder: Path, groups: Sequence[str], agent: str | None, task: str | None) -> dict[str, Any]:
    """Compute the usage from the newest result of each answer in a folder."""
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _rows(folder, agent, task):
        key = tuple(str(row[name]) for name in groups)
        group_sums = sums.setdefault(key, {**dict.fromkeys(_SUMS, 0), "usd_known": 0.0, "unpriced_calls": 0})
        for name in _SUMS:
            group_sums[name] += row[name]
        group_sums["usd_known"] += row["usd"] or 0.0
        group_sums["unpriced_calls"] += row["calls"] if row["usd"] is None else 0
    items = [{**dict(zip(groups, key, strict=True)), **_priced(values)} for key, values in sums.items()]
    items.sort(key=lambda item: (-item["usd_known"], *(item[name] for name in groups)))
    total = {name: sum(item[name] for item in items) for name in (*_SUMS, "usd_known", "unpriced_calls")}
    return {"items": items, "total": _priced(total)}


def _rows(folder: Path, agent: str | None, task: str | None) -> Iterator[dict[str, Any]]:
    from app.engine.result_folder import read_outcomes

    agents = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for name in agents if agent is None else [agent]:
        for one in read_outcomes(folder, name):
            if task is not None and one.task_id != task:
                continue
            for row in (one.result or {}).get("usage_by") or ():
                yield {"agent": name, "task_id": one.task_id, **row}


def _priced(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**values, "usd": None if values["unpriced_calls"] else values["usd_known"]}


def _print(report: Mapping[str, Any], groups: Sequence[str]) -> None:
    from rich.markup import escape

    from app.console.scorecard import usd_text

    numbers = ("calls", "tokens in", "out", "usd")
    table = plain_table(*(name.removesuffix("_id") for name in groups), *numbers, right=numbers)
    for item in report["items"]:
        table.add_row(*(escape(str(item[name])) for name in groups), *_cells(item, usd_text))
    if len(report["items"]) > 1:
        table.add_section()
        table.add_row("all", *[""] * (len(groups) - 1), *_cells(report["total"], usd_text))
    stdout_console().print(table if report["items"] else "no model requests")


def _cells(item: Mapping[str, Any], usd_text: Any) -> list[str]:
    return [*(str(item[name]) for name in _SUMS), usd_text(item["usd"])]


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
