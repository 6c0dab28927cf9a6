"""``assay rejudge``: have answers of a running server judged again, as far as something has changed, and say why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.console.connection import URL, JsonOption, UrlOption, connected
from app.console.errors import Exit, WrongUsage
from app.console.streams import output, print_json, remarks

if TYPE_CHECKING:
    from app.client import Client, Job

_WORDS = {
    "answer": "the answer changed",
    "page": "a page changed",
    "script": "the judge file changed",
    "prompt": "a prompt changed",
    "model": "another model, or another way to ask it",
    "new": "no verdict up to now",
    "not_kept": "nothing changed, but the replies are gone",
}


def rejudge(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="[JOB]...", help="Jobs to be done again.")] = None,
    agent: Annotated[str | None, typer.Option(help="The newest job of each answer of this agent.")] = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    leaves: Annotated[bool, typer.Option("--leaves", help="Say of every leaf what became of it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only foretell what it would take.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Give up waiting after so many seconds.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Judge again what changed, reuse the rest, and say why."""
    if bool(jobs) == (agent is not None):
        raise WrongUsage("name jobs, or an agent with --agent", hint="`assay jobs` lists them.")
    with connected(url) as client:
        chosen = [client.job(job_id) for job_id in jobs] if jobs else newest_of_each(client, agent, task)
        waiting = [job for job in chosen if not job.done]
        for job in waiting:
            remarks().print(f"{job.id} is {job.status} and left alone", markup=False)
        chosen = [job for job in chosen if job.done]
        if not chosen:
            raise WrongUsage("there is no job that has ended", hint="`assay jobs` lists them.")
        if dry_run:
            _foretell(client, chosen, as_json=as_json)
            return
        pairs = _judged_again(client, chosen, timeout)
    if as_json:
        print_json({"answers": [_as_json(job, before, after) for job, before, after in pairs]})
    else:
        _print(pairs, leaves=leaves)
    if not all(after is not None and after.get("status") == "complete" for _, _, after in pairs):
        raise typer.Exit(Exit.INCOMPLETE)


def newest_of_each(client: Client, agent: str | None, task: str | None) -> list[Job]:
    """The newest job of every answer, in the order of tasks and names."""
    found: dict[tuple[str, str], Job] = {}
    for job in client.jobs(agent=agent, task_id=task):
        if job.raw.get("kind", "answer") == "answer":
            found.setdefault((str(job.raw.get("task_id")), str(job.raw.get("answer"))), job)
    return [found[place] for place in sorted(found)]


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The leaves of a result of which something can be said: those a model was asked about, then or now."""
    from app.summary import leaves

    return (leaf for leaf in leaves(result) if leaf.get("rejudged") is not None)


def _judged_again(
    client: Client, chosen: Sequence[Job], timeout_s: float | None
) -> list[tuple[Job, dict[str, Any] | None, dict[str, Any] | None]]:
    """Each job with the result before and after."""
    from app.cli.submit import watch

    before = [None if job.result_id is None else client.result(job.result_id) for job in chosen]
    for job in chosen:
        client.retry(job.id)
    labels = {job.id: f"{job.raw.get('task_id')} {job.raw.get('answer')}" for job in chosen}
    ended = watch(client, labels, timeout_s=timeout_s)
    after = [None if job.result_id is None else client.result(job.result_id) for job in ended]
    return list(zip(ended, before, after, strict=True))


def _foretell(client: Client, chosen: Sequence[Job], *, as_json: bool) -> None:
    from app.console.forecasts import print_items

    found = client.forecast({"jobs": [job.id for job in chosen]})
    if as_json:
        print_json(found)
    else:
        print_items(found)


def _print(pairs: Sequence[tuple[Job, dict[str, Any] | None, dict[str, Any] | None]], *, leaves: bool) -> None:
    from rich import box
    from rich.table import Table

    from app.console.scorecard import score_text
    from app.summary import score_of

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("task", "answer"):
        table.add_column(heading, overflow="fold")
    for heading in ("before", "now", "reused", "again"):
        table.add_column(heading, justify="right")
    table.add_column("because", overflow="fold")
    for job, before, after in pairs:
        said = (after or {}).get("rejudged") or {}
        scores = ["-" if one is None else score_text(score_of(one)) for one in (before, after)]
        counts = [str(said.get("reused", "-")), str(said.get("again", "-"))]
        named = (str(job.raw.get("task_id")), str(job.raw.get("answer")).removesuffix(".md"))
        why = ", ".join(f"{cause} {number}" for cause, number in (said.get("because") or {}).items())
        table.add_row(*named, *scores, *counts, why or (job.error.code if job.error else ""))
    output().print(table)
    for job, _, after in pairs if leaves else ():
        output().print(f"{job.raw.get('task_id')} {job.raw.get('answer')}", markup=False)
        for leaf in leaves_of(after or {}):
            output().print(
                f"  {leaf['id']}  {leaf['outcome']}  {_in_words(leaf['rejudged'])}", markup=False, soft_wrap=True
            )


def _in_words(said: Mapping[str, Any]) -> str:
    if said["reused"]:
        return "reused"
    return "judged again: " + "; ".join(_WORDS.get(cause, cause) for cause in said["because"])


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
