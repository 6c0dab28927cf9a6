"""``assay tasks draft``: let a model draft a task file for a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from answers.submission import text_problems
from app.console import event_loop
from app.console.answer_files import check_name, read_answers, read_pages
from app.console.errors import Incomplete, ToolFailed, WrongUsage
from app.console.judging_options import PageTextsOption, TaskFolderOption, judging_settings, quiet_logging, task_folder
from app.console.streams import counted, print_line, stderr_console
from app.engine.runtime import open_runtime
from app.engine.text_judging import runtime_with_pages
from app.features.drafting.drafts import Draft, DraftInputs, DraftResult, draft_task
from app.settings import Settings
from cache.atomic_files import write_atomic
from judges.llm.providers import LEXICAL, parse_model
from judges.loader import JudgeCatalogue

MAX_QUESTION_CHARS: Final = 20_000
_ID_WORDS: Final = 6
_MAX_ID_CHARS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The task file to write."""

    out: TaskFolderOption = None
    task_id: Annotated[
        str | None, typer.Option("--id", help="Id of the task (default: the first words of the question).")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False


def draft(
    question: Annotated[str, typer.Argument(help="Question that the answers of the task respond to.")],
    *,
    example: Annotated[
        Path | None, typer.Option(help="Answer file (.md) that should get the full score. Each draft judges it.")
    ] = None,
    pages: PageTextsOption = None,
    target: _Target,
    model: Annotated[str | None, typer.Option(help="provider/model (default: ASSAY_MODEL).")] = None,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Maximum number of drafts.")] = 3,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="Stop when this cost is reached (default: ASSAY_BUDGET_USD).")
    ] = None,
) -> None:
    """Draft a task file with a model. Test it, and let the model repair what the tests found.

    What remains doubtful is marked with comments in the file. Exit code 3 if no valid file results (the last
    draft is then in ID.draft.txt), or if the example answer could not be judged completely.
    """
    if pages is not None and example is None:
        raise WrongUsage("--pages is for --example", hint="Leave it out, or give an answer with --example.")
    inputs_of_model = _checked_texts(question, example)
    id = target.task_id if target.task_id is not None else _id_of(question)
    path, rejected = _targets(task_folder(target.out), id, overwrite=target.overwrite)
    texts = None if pages is None else read_pages(pages)
    settings = judging_settings(model=model, budget_usd=budget)
    quiet_logging(settings)

    if parse_model(settings.model).provider == LEXICAL:
        raise WrongUsage("the model lexical cannot draft a task", hint="Choose another one with --model.")
    text, answer = inputs_of_model
    inputs = DraftInputs(task_id=id, question=text, example=answer, model=settings.model, rounds=rounds)
    with event_loop.resumable("Replies are cached; run the same command to continue."):
        result = event_loop.run(_drafted(settings, inputs, texts))
    written = path if result.draft.is_valid else rejected
    _write(written, result.draft.commented(settings.model, result.stopped), overwrite=target.overwrite)
    _report(result, written)


def _checked_texts(question: str, example: Path | None) -> tuple[str, str | None]:
    """Return question and example answer. Raises WrongUsage if one is empty, too long or not text."""
    if len(question) > MAX_QUESTION_CHARS:
        raise WrongUsage(f"the question has {len(question)} characters (max {MAX_QUESTION_CHARS})")
    answer = None if example is None else read_answers(example)[0][1]
    for name, text in (("the question", question), (f"--example {example}", answer)):
        for problem in [] if text is None else text_problems(text, name):
            raise WrongUsage(f"{name} {problem.message}")
    return question.strip(), answer


def _id_of(question: str) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())[:_ID_WORDS]
    id = "_".join(words)[:_MAX_ID_CHARS].rstrip("_")
    if not id:
        raise WrongUsage("the question has no letters from a to z to make an id of", hint="Give an id with --id.")
    return id


def _targets(folder: Path, id: str, *, overwrite: bool) -> tuple[Path, Path]:
    """Return the paths of the task file and of a draft that is not valid. Raises WrongUsage if one is taken."""
    check_name(id, "task id")
    if (folder / f"{id}.py").exists():
        raise WrongUsage(f"{folder / f'{id}.py'} already exists", hint="Choose another id with --id.")
    paths = folder / f"{id}.yaml", folder / f"{id}.draft.txt"
    for path in paths:
        if path.exists() and not overwrite:
            raise WrongUsage(f"{path} already exists", hint="Use --overwrite, or choose another id with --id.")
    return paths


async def _drafted(settings: Settings, inputs: DraftInputs, pages: Mapping[str, str] | None) -> DraftResult:
    def report(number: int, draft: Draft) -> None:
        state = "valid" if draft.is_valid else "not valid"
        message = f"draft {number} of at most {inputs.rounds}: {state}, {counted(len(draft.problems), 'problem')}"
        stderr_console().print_line(message)

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(open_runtime(settings, catalogue=JudgeCatalogue()))
        if pages is not None:
            runtime = await stack.enter_async_context(runtime_with_pages(runtime, pages))
        return await draft_task(runtime, inputs, report)


def _write(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file. If that fails, print the text, because it was paid for."""
    try:
        if overwrite:
            write_atomic(path, text.encode())
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        print_line(text)
        raise ToolFailed(f"Cannot write {path}: {error.strerror}", hint="The draft was printed instead.") from error


def _report(result: DraftResult, path: Path) -> None:
    """Print what was written. Raises Incomplete if there is no valid file or a fault prevented checks."""
    draft = result.draft
    cost = "" if result.usd is None else f", {result.usd:.4f} USD"
    doubtful = len(draft.problems) + len(draft.doubts) + len(draft.faults)
    if not draft.is_valid:
        reason = f": {result.stopped}" if result.stopped else ""
        raise Incomplete(
            f"no draft is valid after {counted(result.rounds, 'round')}{cost}{reason}",
            hint=f"The last draft and its problems are in {path}. Correct it and rename it, or draft again.",
        )
    print_line(f"created: {path} ({counted(result.rounds, 'round')}{cost}), {doubtful} doubtful")
    if result.stopped:
        raise Incomplete(
            f"drafting stopped early: {result.stopped}", hint="The file is valid; its comments list what is open."
        )
    if draft.faults:
        raise Incomplete("the draft was not tested completely", hint="The comments in the file give the reasons.")
