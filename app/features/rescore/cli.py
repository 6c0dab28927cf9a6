"""``assay results rescore``: judge stored answers of a running server again, and compare old and new scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import Exit, WrongUsage
from app.console.event_loop import resumable
from app.console.progress import JobBoard, ProgressBoard, print_paused
from app.console.streams import counted, print_json, stderr_console, stdout_console
from app.console.tables import bounds_text, plain_table
from assay_client import Client

_MAX_FLIPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRescore:
    """Options of a new rescore: which answers to judge again, and how."""

    task: Annotated[str | None, typer.Option(help="Rescore the newest answers to this task.")] = None
    agent: Annotated[str | None, typer.Option(help="Rescore the newest answers of this agent.")] = None
    job: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Rescore the answer of this job. Can be repeated.")
    ] = None
    model: Annotated[str | None, typer.Option(help="Model, as provider/model (default: that of each job).")] = None
    capture: Annotated[bool, typer.Option("--capture", help="Also capture pages that are not stored.")] = False
    budget: Annotated[
        float | None, typer.Option("--budget", min=0.0, metavar="USD", help="Pause when this cost is reached.")
    ] = None


def rescore(
    new: NewRescore,
    rescore_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Print an earlier rescore instead of starting one.")
    ] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the rescore ID.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Stop waiting after this many seconds.")] = None,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Judge stored answers again. Compare old and new scores.

    Use it after a change of the rubric, or with --model for another judge. Shows ranks, flipped leaves and kappa.

    Captures no page: a claim whose page is not stored is not judged. Verdicts whose inputs did not change are reused.
    """
    if bool(new.task or new.agent or new.job) == (rescore_id is not None) or (new.job and (new.task or new.agent)):
        raise WrongUsage("give --task or --agent or both, or --job, or the ID of an earlier rescore")
    if cancel and rescore_id is None:
        raise WrongUsage("--cancel needs the ID of a rescore")
    if rescore_id is not None and (new.capture or new.model or new.budget is not None):
        raise WrongUsage("--capture, --model and --budget are for a new rescore, not for an earlier one")
    with connect(url) as client:
        if rescore_id is None:
            named = {"task_id": new.task, "agent": new.agent, "jobs": new.job}
            options = {"model": new.model, "capture": new.capture, "budget_usd": new.budget}
            rescore_id = str(client.create_rescore({**named, **options})["id"])
            _wait(client, rescore_id, timeout)
        elif cancel:
            client.cancel_rescore(rescore_id)
        document = client.get_rescore(rescore_id)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if not all(each["after"] is not None and each["after"]["status"] == "complete" for each in document["answers"]):
        raise typer.Exit(Exit.INCOMPLETE)


def _wait(client: Client, rescore_id: str, timeout_s: float | None) -> None:
    answers = client.get_rescore(rescore_id)["answers"]
    labels = {each["job_id"]: f"{each['agent']} {each['task_id']} {each['answer_name']}" for each in answers}
    stderr_console().print(f"{rescore_id}: {counted(len(labels), 'answer')}", markup=False)
    again = f"assay results rescore {rescore_id}"
    interrupted = resumable(f"The rescore continues on the server. To see it: {again}; to stop it: {again} --cancel")
    with interrupted, ProgressBoard(stderr_console(), len(labels)) as board:
        jobs = client.wait(labels, timeout_s=timeout_s, on_update=JobBoard(board, labels).show)
    if print_paused(jobs):
        stderr_console().print(f"To cancel the rest: {again} --cancel", markup=False)


def _print(document: Mapping[str, Any]) -> None:
    console = stdout_console()
    agents = plain_table("rank", "agent", "answers", "before", "now", "difference")
    for row in document["agents"]:
        cells = (bounds_text(row["before"]), bounds_text(row["after"]), bounds_text(row["difference"], sign="+"))
        agents.add_row(_rank_text(row), escape(row["agent"]), str(row["answers"]), *cells)
    if document["agents"]:
        console.print(agents)
    answers = plain_table("agent", "task", "answer", "before", "now", "reused", "asked", "flipped", "because")
    for each in document["answers"]:
        answers.add_row(
            *(escape(each[name]) for name in ("agent", "task_id")),
            escape(each["answer_name"].removesuffix(".md")),
            *(bounds_text(each[side] and each[side]["score"]) for side in ("before", "after")),
            *("-" if each[name] is None else str(each[name]) for name in ("reused", "asked")),
            str(each["flipped"]),
            escape(_reason_text(each)),
        )
    console.print(answers)
    if document["agreement"]["claims"]:
        console.print_line(agreement_text(document["agreement"]))
    for flip in document["flips"][:_MAX_FLIPS]:
        console.print_line(_flip_text(flip))
    if document["flipped"] > _MAX_FLIPS:
        console.print(f"{document['flipped'] - _MAX_FLIPS} more leaves flipped; --json lists them", markup=False)
    usage = document["usage"]
    cost = "unknown cost" if usage["usd"] is None else f"{usage['usd']:.4f} usd"
    flipped = counted(document["flipped"], "leaf", "leaves")
    console.print_line(f"{document['id']}: {flipped} flipped, {counted(usage['calls'], 'call')}, {cost}")


def agreement_text(agreement: Mapping[str, Any]) -> str:
    """Return the agreement of the verdicts before and after as a sentence."""
    kappa = agreement["kappa"]
    value = kappa["reason"] if kappa["value"] is None else f"{kappa['value']:.2f}"
    interval = "" if kappa["low"] is None else f" (95 % {kappa['low']:.2f} to {kappa['high']:.2f})"
    return f"equal verdicts: {agreement['equal']} of {counted(agreement['claims'], 'claim')}, kappa {value}{interval}"


def _rank_text(row: Mapping[str, Any]) -> str:
    before, after = row["rank_before"], row["rank_after"]
    return str(after) if before == after else f"{before} -> {after}"


def _reason_text(answer: Mapping[str, Any]) -> str:
    if answer["error"] is not None:
        return str(answer["error"]["code"])
    if answer["after"] is None:
        return str(answer["stage"] or answer["status"])
    return ", ".join(f"{cause} {number}" for cause, number in answer["because"].items())


def _flip_text(flip: Mapping[str, Any]) -> str:
    place = f"{flip['agent']} {flip['task_id']} {flip['answer_name'].removesuffix('.md')} {flip['leaf']}"
    causes = "; ".join(f"{each['cause']}: {each['detail']}" for each in flip["causes"])
    return f"{place}: {flip['before'] or 'missing'} -> {flip['after'] or 'missing'} ({causes})"
