"""``assay rejudge``: judge answers of a running server again, and reuse the verdicts whose inputs did not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import Exit, WrongUsage
from app.console.streams import print_json, stderr_console, stdout_console

if TYPE_CHECKING:
    from app.client import Client, Job

    _Rejudged: TypeAlias = tuple[Job, dict[str, Any] | None, dict[str, Any] | None]
    """Job, earlier result and new result."""

_CAUSES = {
    "answer": "the answer changed",
    "page": "a page changed",
    "script": "the judge file changed",
    "prompt": "a prompt changed",
    "model": "the model or its parameters changed",
    "new": "no earlier verdict",
    "not_kept": "nothing changed, but the earlier replies are no longer stored",
}


def rejudge(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="[JOB]...", help="Jobs to run again.")] = None,
    agent: Annotated[str | None, typer.Option(help="Rejudge the newest job of each answer of this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    leaves: Annotated[bool, typer.Option("--leaves", help="Print the outcome of every leaf.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost without judging.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Stop waiting after this many seconds.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Judge answers again: reuse verdicts whose inputs did not change, and print why the others were judged again."""
    if bool(jobs) == (agent is not None):
        raise WrongUsage("give either job ids or an agent (--agent)", hint="`assay jobs` lists the jobs.")
    with connect(url) as client:
        chosen = [client.job(job_id) for job_id in jobs] if jobs else newest_of_each(client, agent, task)
        waiting = [job for job in chosen if not job.done]
        for job in waiting:
            stderr_console().print(f"skipping {job.id}: it is {job.status}", markup=False)
        chosen = [job for job in chosen if job.done]
        if not chosen:
            raise WrongUsage("no finished jobs", hint="`assay jobs` lists the jobs.")
        if dry_run:
            _print_forecast(client, chosen, as_json=as_json)
            return
        rejudged = _judged_again(client, chosen, timeout)
    if as_json:
        print_json({"answers": [_as_json(job, before, after) for job, before, after in rejudged]})
    else:
        _print(rejudged, leaves=leaves)
    if not all(after is not None and after.get("status") == "complete" for _, _, after in rejudged):
        raise typer.Exit(Exit.INCOMPLETE)


def newest_of_each(client: Client, agent: str | None, task: str | None) -> list[Job]:
    """Return the newest job of each answer, sorted by task and answer name."""
    newest: dict[tuple[str, str], Job] = {}
    for job in client.jobs(agent=agent, task_id=task):
        if job.raw.get("kind", "answer") == "answer":
            newest.setdefault((str(job.raw.get("task_id")), str(job.raw.get("answer"))), job)
    return [newest[answer] for answer in sorted(newest)]


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves that a model judged in this or the earlier result."""
    from app.agent_summary import leaves

    return (leaf for leaf in leaves(result) if leaf.get("rejudged") is not None)


def _judged_again(client: Client, chosen: Sequence[Job], timeout_s: float | None) -> list[_Rejudged]:
    """Rejudge and return each job with its earlier and its new result."""
    from app.cli.submit import watch

    before = [None if job.result_id is None else client.result(job.result_id) for job in chosen]
    for job in chosen:
        client.retry(job.id)
    labels = {job.id: f"{job.raw.get('task_id')} {job.raw.get('answer')}" for job in chosen}
    ended = watch(client, labels, timeout_s=timeout_s)
    after = [None if job.result_id is None else client.result(job.result_id) for job in ended]
    return list(zip(ended, before, after, strict=True))


def _print_forecast(client: Client, chosen: Sequence[Job], *, as_json: bool) -> None:
    from app.console.forecasts import print_server_forecast

    forecast = client.forecast({"jobs": [job.id for job in chosen]})
    if as_json:
        print_json(forecast)
    else:
        print_server_forecast(forecast)


def _print(rejudged: Sequence[_Rejudged], *, leaves: bool) -> None:
    from rich import box
    from rich.table import Table

    from app.agent_summary import score_of
    from app.console.scorecard import score_text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("task", "answer"):
        table.add_column(heading, overflow="fold")
    for heading in ("before", "now", "reused", "again"):
        table.add_column(heading, justify="right")
    table.add_column("because", overflow="fold")
    for job, before, after in rejudged:
        counts = (after or {}).get("rejudged") or {}
        scores = ["-" if one is None else score_text(score_of(one)) for one in (before, after)]
        leaf_counts = [str(counts.get("reused", "-")), str(counts.get("again", "-"))]
        names = (str(job.raw.get("task_id")), str(job.raw.get("answer")).removesuffix(".md"))
        reasons = ", ".join(f"{cause} {number}" for cause, number in (counts.get("because") or {}).items())
        table.add_row(*names, *scores, *leaf_counts, reasons or (job.error.code if job.error else ""))
    stdout_console().print(table)
    for job, _, after in rejudged if leaves else ():
        stdout_console().print(f"{job.raw.get('task_id')} {job.raw.get('answer')}", markup=False)
        for leaf in leaves_of(after or {}):
            stdout_console().print(
                f"  {leaf['id']}  {leaf['outcome']}  {_in_words(leaf['rejudged'])}", markup=False, soft_wrap=True
            )


def _in_words(rejudged: Mapping[str, Any]) -> str:
    if rejudged["reused"]:
        return "reused"
    return "judged again: " + "; ".join(_CAUSES.get(cause, cause) for cause in rejudged["because"])


def _as_json(job: Job, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "task_id": job.raw.get("task_id"),
        "answer": job.raw.get("answer"),
        "status": job.status,
        "result_id": job.result_id,
        "before": None if before is None else before.get("score"),
        "score": None if after is None else after.get("score"),
        "rejudged": None if after is None else after.get("rejudged"),
        "leaves": {
            str(leaf["id"]): {"outcome": leaf["outcome"], **leaf["rejudged"]} for leaf in leaves_of(after or {})
        },
        "usage": None if after is None else after.get("usage"),
    }
