"""``assay results import``: import answers into a folder of the public layout or submit them to a server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from answers.errors import AnswersNotFound, InvalidSubmission
from answers.evidence_files import INDEX, evidence_folder
from answers.jsonl import read_jsonl
from answers.public_layout import ANSWERS, is_answer, read_archive, read_folder
from answers.submission import Answer, Submission
from app.console.answer_files import json_records, supplied_records
from app.console.connection import URL, JsonOption, UrlOption, connect
from app.console.errors import WrongUsage
from app.console.streams import counted, print_json, print_line, stderr_console
from app.engine.report_files import archive_converter
from cache.atomic_files import write_atomic

_ARCHIVES = (".zip", ".tar", ".tgz", ".gz")


def import_(
    source: Annotated[
        Path, typer.Argument(help="JSON lines file, or a folder or archive of <agent>/<task>/answer_<k>.md.")
    ],
    agent: Annotated[
        str | None, typer.Option(help="Import only this agent. For JSON lines without an agent: the agent to assign.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder in the public layout to write to.")] = Path("answers"),
    submit: Annotated[bool, typer.Option("--submit", help="Submit the answers to a running server instead.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing answers that differ.")] = False,
    url: UrlOption = URL,
    as_json: JsonOption = False,
) -> None:
    """Import answers. If one is invalid, none is imported."""
    submissions = _read(source, agent)
    if submit:
        report = _submit(submissions, url, source)
    else:
        report = _write(submissions, out, source, overwrite=overwrite)
        incomplete = sum(bool(submission.run or submission.model or submission.metadata) for submission in submissions)
        if incomplete:
            stderr_console().print(
                "A folder cannot store the run, model and metadata of an answer; use --submit to keep them: "
                f"{counted(incomplete, 'submission')}"
            )
    if as_json:
        print_json(report)
        return
    counts = ", ".join(f"{count} {name}" for name, count in report.items() if isinstance(count, int))
    print_line(f"{counts}: {url if submit else out}")


def _read(source: Path, agent: str | None) -> tuple[Submission, ...]:
    """Return the answers of a source.

    Raises:
        WrongUsage: there are no answers, or some are invalid. The hint lists all problems.
    """
    if not source.exists():
        raise WrongUsage(f"{source}: no such file or folder")
    try:
        submissions = _submissions(source, agent)
    except AnswersNotFound as error:
        raise WrongUsage(str(error)) from error
    except InvalidSubmission as error:
        listed = (
            f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in error.problems
        )
        raise WrongUsage(f"{source}: invalid answers", hint="\n".join(listed)) from error
    except OSError as error:
        raise WrongUsage(f"Cannot read {source}: {error.strerror}") from error
    if agent is not None:
        submissions = tuple(submission for submission in submissions if submission.agent == agent)
    if not submissions:
        raise WrongUsage(f"{source}: no answers" + (f" of agent {agent!r}" if agent else ""))
    return submissions


def _submissions(source: Path, agent: str | None) -> tuple[Submission, ...]:
    if source.is_dir():
        agents = (
            [agent]
            if agent
            else sorted(
                path.name for path in source.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))
            )
        )
        return tuple(submission for name in agents for submission in read_folder(source, name))
    with source.open("rb") as file:
        return read_archive(file, archive_converter()) if source.suffix in _ARCHIVES else read_jsonl(file, agent=agent)


def _write(submissions: Sequence[Submission], to: Path, source: Path, *, overwrite: bool) -> dict[str, object]:
    """Write the answers and their supplied pages. Nothing is written unless all of them can be."""
    files: dict[Path, Answer] = {}
    for submission in submissions:
        for answer in submission.answers:
            path = to / submission.agent / submission.task_id / answer.name
            if path in files and files[path].text != answer.text:
                raise WrongUsage(
                    f"{path} would be written twice with different texts",
                    hint="In a folder, answers of several runs need different names. --submit keeps runs apart.",
                )
            files[path] = answer
    contents = {path: answer.text.encode("utf-8") for path, answer in files.items()}
    for path, answer in files.items() if to.resolve() != source.resolve() else ():
        records = _evidence(source, path.parent.relative_to(to), answer)
        if records:
            index = json.dumps(records, ensure_ascii=False).encode("utf-8", "replace")
            contents[path.parent / evidence_folder(answer.name) / INDEX] = index
    changed = {
        path: content for path, content in contents.items() if not (path.is_file() and path.read_bytes() == content)
    }
    conflicting = [path for path in changed if path.exists()]
    if conflicting and not overwrite:
        listed = ", ".join(map(str, conflicting[:5]))
        raise WrongUsage(
            f"existing files have other contents: {listed}{', ...' * (len(conflicting) > 5)}",
            hint=f"Use --overwrite to replace {counted(len(conflicting), 'file')}.",
        )
    for path, content in changed.items():
        if path.name == INDEX:
            shutil.rmtree(path.parent, ignore_errors=True)  # the files of the pages that it replaces
        write_atomic(path, content)
    for path in (path for path in files if not is_answer(path.name)):
        message = f"warning: {path} will not be judged, because it is not an {ANSWERS}: rename it, or use --submit"
        stderr_console().print_line(message)
    written = len(changed.keys() & files.keys())
    return {"written": written, "unchanged": len(files) - written, "files": [str(path) for path in files]}


def _submit(submissions: Sequence[Submission], url: str, source: Path) -> dict[str, object]:
    submitted: list[dict[str, object]] = []
    with connect(url) as client:
        for submission in submissions:
            receipt = client.submit(
                submission.agent,
                submission.task_id,
                [(answer.name, answer.text) for answer in submission.answers],
                model=submission.model,
                run=submission.run,
                metadata=submission.metadata or None,
                evidence={
                    answer.name: _evidence(source, Path(submission.agent, submission.task_id), answer)
                    for answer in submission.answers
                },
                evidence_policy=submission.evidence_policy,
            )
            jobs = [{"id": job.id, "answer": job.answer} for job in receipt.jobs]
            submitted.append({"id": receipt.id, "agent": submission.agent, "task_id": submission.task_id, "jobs": jobs})
    return {"submitted": sum(len(submission.answers) for submission in submissions), "submissions": submitted}


def _evidence(source: Path, folder: Path, answer: Answer) -> list[dict[str, Any]]:
    """Return the pages that the agent supplied with an answer, in JSON form. ``folder`` is ``<agent>/<task_id>``.

    Raises:
        WrongUsage: They are invalid.
    """
    if source.is_dir():
        return supplied_records(source / folder, answer.name)
    try:
        return json_records(answer.evidence, str(folder / evidence_folder(answer.name)))
    except InvalidSubmission as error:
        raise WrongUsage(f"the supplied pages in {source} are invalid", hint=str(error)) from error
