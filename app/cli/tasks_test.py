"""``assay tasks test``: does a judge notice when an answer is changed?"""

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

from app.cli.connection import JsonOption
from app.cli.console import near, output, print_json, remarks
from app.cli.errors import Exit, Incomplete, Interrupted, WrongUsage
from app.cli.judging import (
    IsolateOption,
    JudgesOption,
    OnOff,
    find_answers,
    judging_settings,
    quiet_logging,
)

if TYPE_CHECKING:
    from app.settings import Settings
    from judges.mutation.leaves import Seen
    from judges.mutation.mutations import Mutation
    from judges.mutation.report import Tried
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
    """Change an answer in known ways; say which leaves should have moved and did not. Exit 100 if there is one."""
    settings = judging_settings(judges=judges, model=model, isolate=None if isolate is None else isolate is OnOff.ON)
    quiet_logging(settings)
    judge = _judge(task_id, settings)
    text, texts = _material(task_id, answer, agent, answers, pages)
    case = _Case(judge=judge, answer=text, pages=texts, model=settings.model, seed=seed, per_kind=per_kind or None)
    try:
        base, runs = asyncio.run(_run(settings, case))
    except KeyboardInterrupt:
        raise Interrupted("stopped") from None
    if not base.passed and base.not_judged:
        raise Incomplete(
            f"no claim of this answer passes: {len(base.not_judged)} leaves could not be judged",
            hint="`assay evaluate` shows why; with --pages nothing needs to be captured.",
        )
    if not base.passed:
        raise WrongUsage(
            "no claim of this answer passes, so no leaf can be seen to move",
            hint="Name an answer that the judge thinks well of with --answer.",
        )

    from judges.mutation.report import report_json

    report = report_json(base, runs, seed=seed, model=case.model)
    if as_json:
        print_json({"task_id": task_id, **report})
    else:
        _print(task_id, report)
    if report["missed"] or report["strays"]:
        raise typer.Exit(Exit.GATE_FAILED)
    if report["not_judged"] or base.not_judged:
        raise typer.Exit(Exit.INCOMPLETE)


def _judge(task_id: str, settings: Settings) -> Judge:
    from app.runtime import load_catalogue
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
        from app.cli.submit import read_answers

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


async def _run(settings: Settings, case: _Case) -> tuple[Seen, Sequence[Tried]]:
    from rich.progress import Progress

    from answers.citations import unique_urls
    from app.mutation_testing import judging, texts_of, with_pages_of
    from app.runtime import open_runtime
    from judges.mutation.trying import MutationTest

    console = remarks()
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings))
        if case.pages is not None:
            runtime = await stack.enter_async_context(with_pages_of(runtime, case.pages))
        mutation_test = MutationTest(judging(runtime, case.judge, case.model), case.answer)
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            bar = progress.add_task("the answer as it is", total=None)

            def before(done: int, total: int, change: Mutation) -> None:
                progress.update(bar, completed=done, total=total, description=escape(change.title))

            base = await mutation_test.base()
            if not base.passed:
                return base, ()
            pages = await texts_of(runtime, unique_urls(case.answer))
            return base, await mutation_test.run(base, pages, seed=case.seed, per_kind=case.per_kind, before=before)


def _print(task_id: str, report: dict[str, Any]) -> None:
    """What was missed first and in full; a line for every change."""
    leaves = report["leaves"]
    _line(
        f"{task_id}, judged by {report['model']}, seed {report['seed']}: {report['changes']} changes of an answer "
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
