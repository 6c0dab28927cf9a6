"""``assay tasks test``: does a judge notice when an answer, or a value extracted from it, is wrong?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from app.console.connection import JsonOption
from app.console.errors import Exit, Incomplete, Interrupted, WrongUsage
from app.console.judging_options import (
    IsolateOption,
    JudgesOption,
    OnOff,
    find_answers,
    judging_settings,
    quiet_logging,
)
from app.console.streams import near, output, print_json, remarks

if TYPE_CHECKING:
    from app.settings import Settings
    from judges.analysis.mutation.leaves import Seen
    from judges.analysis.mutation.mutations import Mutation
    from judges.analysis.mutation.report import Tried
    from judges.registry import Judge

LEXICAL = "lexical"
_MISSED = {
    "deaf": "asked the same as before: the change was not read",
    "fixed": "asked the same as before: the claim is the judge's own, whatever the answer says",
    "unsourced": "judged by the answer's own word, now that no page is cited",
    "lenient": "asked about the change, and still held to be true",
}
"""What it means when a leaf that had to move did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is tested. ``pages`` are texts by URL; None: the pages are captured, or were."""

    judge: Judge
    answer: str
    pages: Mapping[str, str] | None
    model: str
    seed: int
    per_kind: int | None


def test_judge(
    task_id: Annotated[str, typer.Argument(help="The task whose judge is tested.")],
    answer: Annotated[Path | None, typer.Option(help="An answer (.md) that the judge should think well of.")] = None,
    agent: Annotated[str | None, typer.Option(help="Take the first answer of this agent instead.")] = None,
    answers: Annotated[Path, typer.Option(help="Folder of <agent>/<task>/answer_<k>.md.")] = Path("answers"),
    pages: Annotated[
        Path | None,
        typer.Option(help="JSON object of page texts by URL: no page is captured, others are gone (404)."),
    ] = None,
    judges: JudgesOption = None,
    model: Annotated[str, typer.Option(help="provider/model; the default costs nothing.")] = LEXICAL,
    seed: Annotated[int, typer.Option(help="Which values and pages are chosen.")] = 0,
    per_kind: Annotated[int, typer.Option(min=0, help="Changes of each kind at most; 0: all there are.")] = 3,
    isolate: IsolateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit every extracted value, every citation and the answer; report what no leaf notices. Exit 100 if any."""
    settings = judging_settings(judges=judges, model=model, isolate=None if isolate is None else isolate is OnOff.ON)
    quiet_logging(settings)
    judge = _judge(task_id, settings)
    text, texts = _material(task_id, answer, agent, answers, pages)
    case = _Case(judge=judge, answer=text, pages=texts, model=settings.model, seed=seed, per_kind=per_kind or None)
    try:
        report = _tested(settings, case)
    except KeyboardInterrupt:
        raise Interrupted("stopped") from None
    base, changes, fields = report["base"], report["answer_changes"], report["fields"]
    if not base["passed"]:
        _refuse_without_passes(base, fields)
    if as_json:
        print_json({"task_id": task_id, **changes, "fields": fields, "lint": report["lint"]})
    else:
        _print_fields(task_id, judge, fields)
        _print_lint(report["lint"])
        if base["passed"]:
            _print(task_id, changes)
        else:
            _line("\nNo claim of this answer passes, so its text was not changed. Fix the judge, then test it again.")
    if changes["missed"] or changes["strays"] or fields["findings"]:
        raise typer.Exit(Exit.GATE_FAILED)
    if changes["not_judged"] or base["not_judged"]:
        raise typer.Exit(Exit.INCOMPLETE)


def _tested(settings: Settings, case: _Case) -> dict[str, Any]:
    """The reports on the fields, on changes of the answer and on the rubric.

    The lexical judge on given pages does everything in the child process. Everything else needs this installation's
    models or pages, so the answer and its changes are judged here, and the extractions are replayed in the child.
    """
    from app.engine.judge_trials import base_json, field_test

    if case.judge.path is None:
        raise WrongUsage(f"the judge of {case.judge.task!r} was not loaded from a file")
    if case.model == LEXICAL and case.pages is not None:
        return field_test(case.judge.path, case.answer, case.pages, answer_changes=(case.seed, case.per_kind))
    from judges.analysis.mutation.report import report_json
    from rubrics.verdict import Outcome

    run = asyncio.run(_run(settings, case))
    failed = [key for key, leaf in run.base.leaves.items() if leaf.outcome is Outcome.FAILED]
    refuted = failed if run.base.passed else []  # if nothing passes, this tells nothing
    report = field_test(case.judge.path, case.answer, run.pages, replies=run.replies, refuted=refuted)
    changes = report_json(run.base, run.tried, seed=case.seed, model=case.model)
    return {**report, "base": base_json(run.base), "answer_changes": changes}


def _refuse_without_passes(base: dict[str, Any], fields: dict[str, Any]) -> None:
    """Refuse to report on a judge of which no claim passes, unless the edits of the fields show why.

    If no claim is shown a page, the findings are about an extraction that failed and not about the judge.
    """
    if base["not_judged"]:
        raise Incomplete(
            f"no claim of this answer passes: {len(base['not_judged'])} leaves could not be judged",
            hint="`assay evaluate` shows why; with --pages nothing needs to be captured.",
        )
    if not base["with_pages"]:
        raise WrongUsage(
            "no claim of this answer passes, and none is shown a page: the model extracted no values or no citations",
            hint="Name another model with --model, or an answer that the judge scores well with --answer.",
        )
    if not fields["findings"]:
        raise WrongUsage(
            "no claim of this answer passes, so no leaf can be seen to move",
            hint="Name an answer that the judge scores well with --answer.",
        )


def _judge(task_id: str, settings: Settings) -> Judge:
    from app.engine.runtime import load_catalogue
    from judges.errors import JudgeNotLoadable

    catalogue = load_catalogue(settings)
    if task_id in catalogue.broken:
        broken = catalogue.broken[task_id]
        raise JudgeNotLoadable(broken.partition("\n")[0], traceback=broken)
    if task_id not in catalogue.judges:
        raise WrongUsage(f"there is no judge for task {task_id!r}", hint=near(task_id, catalogue.judges))
    return catalogue.judges[task_id]


def _material(
    task_id: str, answer: Path | None, agent: str | None, answers: Path, pages: Path | None
) -> tuple[str, Mapping[str, str] | None]:
    """The answer's text, and the pages where they are given; a shipped task brings its own."""
    texts = None if pages is None else _page_texts(pages)
    if answer is not None:
        from app.console.answer_files import read_answers

        return read_answers(answer)[0][1], texts
    if agent is not None:
        return find_answers(answers, agent, [task_id])[0].answers[0].text, texts
    from app.demo.shipped import examples_dir, page_texts

    shipped = examples_dir() / "demo" / task_id / "answer_1.md"
    if not shipped.is_file():
        raise WrongUsage(
            f"{task_id!r} is no shipped task, so it has no answer to change",
            hint="Name one with --answer FILE, or with --agent NAME.",
        )
    return shipped.read_text(encoding="utf-8"), page_texts() if texts is None else texts


def _page_texts(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongUsage(f"--pages {path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise WrongUsage(f"--pages {path}: wanted is one JSON object of texts by URL")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The answer and its changes as they were judged here; ``replies`` are the extractions from the answer itself."""

    base: Seen
    tried: Sequence[Tried]
    pages: Mapping[str, str]
    replies: Mapping[str, str]


async def _run(settings: Settings, case: _Case) -> _Run:
    from rich.progress import Progress

    from answers.citations import unique_urls
    from app.engine.runtime import open_runtime
    from app.engine.text_judging import judging, texts_of, with_pages_of
    from judges.analysis.mutation.replay import RecordingClient
    from judges.analysis.mutation.trying import MutationTest

    console = remarks()
    replies: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings))
        if case.pages is not None:
            runtime = await stack.enter_async_context(with_pages_of(runtime, case.pages))
        judged = judging(runtime, case.judge, case.model, lambda client: RecordingClient(client, replies))
        mutation_test = MutationTest(judged, case.answer)
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            bar = progress.add_task("the answer as it is", total=None)

            def before(done: int, total: int, change: Mutation) -> None:
                progress.update(bar, completed=done, total=total, description=escape(change.title))

            base = await mutation_test.base()
            recorded = dict(replies)
            pages = await texts_of(runtime, unique_urls(case.answer))
            tried: Sequence[Tried] = ()
            if base.passed:
                tried = await mutation_test.run(base, pages, seed=case.seed, per_kind=case.per_kind, before=before)
            return _Run(base=base, tried=tried, pages=pages, replies=recorded)


def _print_fields(task_id: str, judge: Judge, fields: dict[str, Any]) -> None:
    """The findings of the field test, each with its line and a fix."""
    _line(
        f"{task_id}: {fields['fields']} extracted values and their citations edited in {fields['edits']} ways, "
        f"{fields['leaves']} leaves watched"
    )
    for one in fields["findings"]:
        where = "" if one["line"] is None else f"  {judge.path}:{one['line']}"
        _line(f"\nNOT PROTECTED  {one['subject']}{where}\n    {one['message']}\n    Fix: {one['fix']}")
    for one in fields["exempt"]:
        _line(f"\nexempt         {one['subject']}: {one['exempt']}")
    for note in fields["notes"]:
        _line(f"note: {note}")
    if not fields["findings"]:
        _line("Every value, citation and leaf is protected.")


def _print_lint(smells: list[dict[str, str]]) -> None:
    for smell in smells:
        _line(f"lint: {smell['node_id']}: {smell['message']}")


def _print(task_id: str, report: dict[str, Any]) -> None:
    """What was missed first and in full; a line for every change."""
    leaves = report["leaves"]
    _line(
        f"\n{task_id}, judged by {report['model']}, seed {report['seed']}: {report['changes']} changes of an answer "
        f"of which {leaves['watched']} of {leaves['all']} leaves are claims that pass"
    )
    for change in report["mutations"]:
        _print_change(change)
    if leaves["never_tested"]:
        _line(f"\nput to the test by none of these changes: {', '.join(leaves['never_tested'])}")
    _line(
        f"\n{report['expected']} times a leaf had to move: {report['missed']} missed; "
        f"{report['strays']} moved without reason; {report['not_judged']} not judged"
    )


def _print_change(change: dict[str, Any]) -> None:
    fates: dict[str, list[str]] = {}
    for one in change["expected"]:
        fates.setdefault(one["fate"], []).append(one["leaf"])
    missed = [one for one in change["expected"] if one["fate"] in _MISSED]
    verdict = "MISSED" if missed else "STRAY" if change["strays"] else "caught" if change["expected"] else "-"
    _line(f"\n{verdict:<7} {change['title']}")
    for fate, leaves in fates.items():
        if fate not in _MISSED:
            _line(f"        {fate.replace('_', ' ')}: {', '.join(leaves)}")
    for one in missed:
        _line(f"        did not move: {one['leaf']} ({_MISSED[one['fate']]})\n            {one['claim_after']}")
    for one in change["strays"]:
        _line(f"        moved without reason: {one['leaf']}, {one['outcome_before']} to {one['outcome_after']}")
    if change["not_judged"]:
        _line(f"        not judged: {', '.join(change['not_judged'])}")


def _line(text: str) -> None:
    output().print(text, markup=False, soft_wrap=True)
