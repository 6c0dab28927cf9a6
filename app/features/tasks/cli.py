"""``assay tasks test``: does a task notice wrong extracted values, wrong citations and an empty answer?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from app.console import event_loop
from app.console.answer_files import read_answers, read_pages
from app.console.connection import JsonOption
from app.console.errors import Exit, Incomplete, WrongUsage
from app.console.estimates import range_text, usd_text
from app.console.judging_options import (
    JudgesOption,
    PageTextsOption,
    find_answers,
    judging_settings,
    no_judge,
    quiet_logging,
)
from app.console.not_judged import print_not_judged
from app.console.streams import counted, print_json, print_line, stderr_console
from app.demo.expected import examples_dir, page_texts
from app.engine.judge_files import load_catalogue
from app.engine.judge_trials import LintReport, model_test
from app.engine.runtime import open_runtime
from app.engine.text_judging import runtime_with_pages
from app.settings import Settings
from judges.analysis.task_tests.leaves import not_judged
from judges.errors import JudgeNotLoadable
from judges.llm.providers import LEXICAL
from judges.loader import JudgeCatalogue
from judges.registry import Judge
from judges.result import LEXICAL_NOTICE


def test_judge(
    task_id: Annotated[str, typer.Argument(help="Task to test.")],
    answer: Annotated[Path | None, typer.Option(help="Answer file (.md) that should get the full score.")] = None,
    agent: Annotated[str | None, typer.Option(help="Use the first answer of this agent instead.")] = None,
    answers: Annotated[Path, typer.Option(help="Folder of <agent>/<task>/answer_<k>.md.")] = Path("answers"),
    pages: PageTextsOption = None,
    judges: JudgesOption = None,
    model: Annotated[str, typer.Option(help="provider/model. The default is free of cost.")] = LEXICAL,
    as_json: JsonOption = False,
) -> None:
    """Test a task with edited values and citations. Report what it does not notice.

    Exit code 100 if there are any.
    """
    settings = judging_settings(judges=judges, model=model)
    quiet_logging(settings)
    judge = _find_judge(task_id, settings)
    text, texts = _read_input(task_id, answer, agent, answers, pages)
    result, report = event_loop.run(_run_test(settings, judge, text, texts))
    base, fields, scores = (report[part] for part in ("base", "fields", "scores"))
    # Without a passing claim, the findings could be about a fault or a failed extraction, and not about the task.
    if not base["passed"] and base["not_judged"]:
        print_not_judged([result], again="Or give the texts of the pages with --pages, then no page is captured.")
        raise Incomplete(
            f"no claim of this answer passes; not judged: {counted(len(base['not_judged']), 'leaf', 'leaves')}"
        )
    if not base["passed"] and not base["with_pages"]:
        raise WrongUsage(
            "no claim of this answer passes, and none is shown a page: the model extracted no values or no citations",
            hint="Use --model to choose another model, or --answer to give an answer that passes.",
        )
    if as_json:
        print_json({"task_id": task_id, "model": model, "fields": fields, "lint": report["lint"], "scores": scores})
    else:
        _print_fields(task_id, judge, fields)
        for line in LintReport(findings=report["lint"]).lines():
            print_line(line)
        _print_scores(scores)
    if fields["findings"] or scores["findings"]:
        raise typer.Exit(Exit.GATE_FAILED)
    if base["not_judged"] or not_judged(scores):
        raise typer.Exit(Exit.INCOMPLETE)


def _find_judge(task_id: str, settings: Settings) -> Judge:
    catalogue = event_loop.run(load_catalogue(settings))
    if task_id in catalogue.broken:
        problem = catalogue.broken[task_id]
        summary, traceback, _ = problem.partition("\nTraceback ")
        raise JudgeNotLoadable(summary, traceback=problem if traceback else "")
    if task_id not in catalogue.judges:
        raise no_judge(task_id, catalogue.judges)
    return catalogue.judges[task_id]


def _read_input(
    task_id: str, answer: Path | None, agent: str | None, answers: Path, pages: Path | None
) -> tuple[str, Mapping[str, str] | None]:
    """Return the text of the answer, and the pages if they are given. Example tasks include their own pages."""
    texts = None if pages is None else read_pages(pages)
    if answer is not None:
        return read_answers(answer)[0][1], texts
    if agent is not None:
        return find_answers(answers, agent, [task_id])[0].answers[0].text, texts
    example_answer = examples_dir() / "demo" / task_id / "answer_1.md"
    if not example_answer.is_file():
        raise WrongUsage(
            f"{task_id!r} is not an example task, so it has no built-in answer",
            hint="Give an answer with --answer FILE or --agent NAME.",
        )
    return example_answer.read_text(encoding="utf-8"), page_texts() if texts is None else texts


async def _run_test(
    settings: Settings, judge: Judge, answer: str, pages: Mapping[str, str] | None
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the result of the answer, and the report of the test."""
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings, catalogue=JudgeCatalogue()))
        if pages is not None:
            runtime = await stack.enter_async_context(runtime_with_pages(runtime, pages))
        if settings.model == LEXICAL:
            stderr_console().print(LEXICAL_NOTICE, markup=False)
        base, report = await model_test(runtime, judge, answer, settings.model, on_stage=stderr_console().print_line)
        return base.result, report


def _print_fields(task_id: str, judge: Judge, fields: dict[str, Any]) -> None:
    """Print the findings of the field test, each with its location and a fix."""
    print_line(
        f"{task_id}: {counted(fields['fields'], 'extracted value')} and citations edited in "
        f"{counted(fields['edits'], 'way')}, {counted(fields['leaves'], 'leaf', 'leaves')} watched"
    )
    for finding in fields["findings"]:
        location = "" if finding["line"] is None else f"  {judge.path}:{finding['line']}"
        print_line(
            f"\nNOT PROTECTED  {finding['subject']}{location}\n    {finding['message']}\n    Fix: {finding['fix']}"
        )
    for finding in fields["exempt"]:
        print_line(f"\nexempt         {finding['subject']}: {finding['exempt']}")
    for note in fields["notes"]:
        print_line(f"note: {note}")
    if not fields["findings"]:
        print_line("Every value, citation and leaf is protected.")


def _print_scores(scores: dict[str, Any]) -> None:
    """Print the findings about the correct and the empty answer, the votes that disagree, and the cost of an answer."""
    gold = scores["gold"]
    for finding in scores["findings"]:
        label = "NOT PROTECTED" if finding["code"] == "never_flips" else "WRONG SCORE"
        print_line(f"\n{label:<14} {finding['message']}")
        for leaf in finding["leaves"]:
            print_line(f"    {leaf['leaf']} ({_outcome(leaf)}): {leaf['claim'] or leaf['description']}")
            if leaf["reasoning"]:
                print_line(f"        {leaf['reasoning']}")
        print_line(f"    Fix: {finding['fix']}")
    for name in ("gold", "empty"):
        for leaf in scores[name].get("not_judged", ()):
            print_line(f"not judged ({name} answer): {leaf['leaf']} ({_outcome(leaf)})")
    for leaf in gold["split_votes"]:
        print_line(f"votes disagree: {leaf['leaf']} ({_outcome(leaf)}): {leaf['claim']}")
    if not scores["findings"] and not not_judged(scores):
        print_line("The correct answer scores 1, and an empty answer scores 0.")
    usage, estimate = gold["usage"], gold["estimate"]
    if estimate is None:
        usd = "unknown price" if usage["usd"] is None else f"{usage['usd']:.4f} usd"
        cost = f"{counted(usage['calls'], 'model call')}, {usd}"
    else:  # the lexical judge calls no model
        calls, usd = range_text(estimate["calls"]), usd_text(estimate["usd"])
        cost = f"with {estimate['model']} {calls} model calls, {usd} usd"
    print_line(f"One answer: {counted(gold['pages'], 'page')}, {cost}")


def _outcome(leaf: dict[str, Any]) -> str:
    return f"{leaf['outcome']}: {leaf['reason']}" if leaf["reason"] else str(leaf["outcome"])
