"""``assay submit``: submit answers to a running server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console.answer_files import check_name, read_answers, supplied_records
from app.console.connection import URL, DryRunOption, JsonOption, UrlOption, connect
from app.console.errors import Exit, WrongUsage
from app.console.estimates import print_estimates
from app.console.event_loop import resumable
from app.console.judging_options import EvidenceOption
from app.console.not_judged import print_not_judged
from app.console.progress import JobBoard, ProgressBoard, print_paused
from app.console.scorecard import answer_table
from app.console.streams import counted, print_json, stderr_console, stdout_console, suggestion
from assay_client import ApiError, Client, Job, Receipt
from judges.agent_figures import AnswerOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submission:
    agent: Annotated[str, typer.Option(help="Agent that wrote the answers.")]
    task: Annotated[str, typer.Option(help="Task of the answers.")]
    model: Annotated[str | None, typer.Option(help="Model, as provider/model (default: that of the server).")] = None
    run: Annotated[str | None, typer.Option(help="Label for this run of the agent.")] = None
    evidence: EvidenceOption = None


def submit(
    path: Annotated[
        Path,
        typer.Argument(
            help="Answer (.md, .docx, .html or .pdf), reply of a model provider (.json), folder of such files, or - "
            "for standard input."
        ),
    ],
    *,
    submission: _Submission,
    url: UrlOption = URL,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the results and print the scores.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Stop waiting after this many seconds.")] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Submit answers to a running server."""
    for name, option in ((submission.agent, "--agent"), (submission.task, "--task"), (submission.run, "--run")):
        if name is not None:
            check_name(name, option)
    answers = read_answers(path)
    evidence = {name: supplied_records(path, name) for name, _ in answers}
    with connect(url) as client:
        if dry_run:
            _print_estimates(client, submission, answers, as_json=as_json)
            return
        receipt = _submit(client, submission, answers, evidence)
        if not wait:
            _print_receipt(receipt, client.url, as_json=as_json)
            return
        for job in receipt.jobs:
            stderr_console().print_line(f"{job.answer}  {client.url}/jobs/{job.id}")
        follow(client, {job.id: job.answer for job in receipt.jobs}, timeout_s=timeout, as_json=as_json)


def follow(client: Client, labels: Mapping[str, str], *, timeout_s: float | None, as_json: bool) -> None:
    """Wait for jobs, show their progress, print scores, pages and causes of claims that were not judged.

    ``labels`` maps job ids to displayed names. Exits with INCOMPLETE if an answer is incomplete or has no result.
    """
    again = f"assay admin jobs --wait {' '.join(labels)}"
    interrupted = resumable(f"The jobs continue on the server. To wait again: {again}")
    with interrupted, ProgressBoard(stderr_console(), len(labels)) as board:
        jobs = client.wait(labels, timeout_s=timeout_s, on_update=JobBoard(board, labels).show)
    ended = [(job, None if job.result_id is None else client.get_result(job.result_id)) for job in jobs]
    if as_json:
        print_json({"jobs": [dict(job.raw) for job, _ in ended], "results": [result for _, result in ended if result]})
    else:
        _print_scores(ended, client.url)
    print_paused(jobs)
    incomplete = [job.id for job, result in ended if result is None or result.get("status") != "complete"]
    ids = f"{' '.join(incomplete[:5])}{' ...' * (len(incomplete) > 5)}"
    retry = f"Then judge again what is open: assay admin jobs --retry {ids}"
    print_not_judged((result for _, result in ended), again=retry)
    if incomplete:
        raise typer.Exit(Exit.INCOMPLETE)


def _print_estimates(client: Client, submission: _Submission, answers: list[tuple[str, str]], *, as_json: bool) -> None:
    named_answers = [{"name": name, "text": text} for name, text in answers]
    body = {
        "agent": submission.agent,
        "task_id": submission.task,
        "answers": named_answers,
        "model": submission.model,
    }
    document = client.create_estimate(body)
    if as_json:
        print_json(document)
    else:
        items = ((submission.task, {**item, "estimate": item}) for item in document["items"])
        print_estimates(items, document["total"], document["model"])


def _submit(
    client: Client,
    submission: _Submission,
    answers: list[tuple[str, str]],
    evidence: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Receipt:
    task = submission.task
    try:
        return client.submit(
            submission.agent,
            task,
            answers,
            model=submission.model,
            run=submission.run,
            evidence=evidence,
            evidence_policy=submission.evidence,
        )
    except ApiError as error:
        known = [str(one["task_id"]) for one in client.list_tasks()] if error.status in (404, 422) else []
        if known and task not in known:
            raise WrongUsage(f"the server has no task {task!r}", hint=suggestion(task, known)) from error
        raise


def _print_receipt(receipt: Receipt, base: str, *, as_json: bool) -> None:
    if as_json:
        jobs = [{"id": job.id, "answer": job.answer, "status": job.status, "url": job.url} for job in receipt.jobs]
        print_json({"id": receipt.id, "agent": receipt.agent, "task_id": receipt.task_id, "jobs": jobs})
        return
    console = stdout_console()
    console.print(f"submission {receipt.id}: {counted(len(receipt.jobs), 'job')}", soft_wrap=True)
    for job in receipt.jobs:
        console.print_line(f"{job.answer}  {job.status}  {base}/jobs/{job.id}")
    ids = " ".join(job.id for job in receipt.jobs)
    console.print(f"wait for the scores: assay admin jobs --wait {ids}", soft_wrap=True)


def _print_scores(ended: Sequence[tuple[Job, Mapping[str, Any] | None]], base: str) -> None:
    outcomes = [
        (
            str(job.raw["agent"]),
            AnswerOutcome(
                task_id=str(job.raw["task_id"]),
                answer_name=str(job.raw["answer"]),
                result=result,
                error_code=job.error.code if job.error else job.status,
            ),
        )
        for job, result in ended
    ]
    console = stdout_console()
    console.print(answer_table(outcomes))
    for job, result in ended:
        if result is not None:
            is_answer = job.raw.get("kind", "answer") == "answer"  # the page of any other job leads to its result
            console.print_line(f"{base}/results/{result['id']}" if is_answer else f"{base}/jobs/{job.id}")
