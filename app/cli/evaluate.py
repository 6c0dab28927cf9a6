"""``assay evaluate``: judge a folder of answers in the public layout, without a server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from answers.submission import Submission
from app.console import event_loop
from app.console.connection import DryRunOption, JsonOption
from app.console.errors import Exit, WrongUsage
from app.console.estimates import print_plan
from app.console.judging_options import (
    AnswersOption,
    CacheOption,
    EvidenceOption,
    JudgeOption,
    JudgesOption,
    MaxPagesOption,
    ModelOptions,
    TaskOption,
    baseline_suggested,
    check_tasks,
    find_answers,
    judging_settings,
    quiet_logging,
)
from app.console.not_judged import print_not_judged
from app.console.progress import ProgressBoard, Step
from app.console.scorecard import answer_table, finished_line, missing_answers_line, scorecard
from app.console.streams import counted, print_json, print_line, stderr_console, stdout_console
from app.dashboard.effects import Effects
from app.dashboard.outline import outline
from app.dashboard.wording import shorten
from app.engine.estimate import MAX_PAGES, AnswerFacts, Estimate, estimate_answer, past_results
from app.engine.evaluation import AnswerEvaluation, PlannedAnswer, Planner, evaluate_all
from app.engine.judge_files import load_catalogue
from app.engine.page_freshness import CurrentPages
from app.engine.public_cache import PublicCache
from app.engine.result_folder import write_summaries
from app.engine.runtime import create_fork_server_pool, open_blobs, open_runtime
from app.features.comparison.cli_compare import print_comparison
from app.features.comparison.paired_comparison import ComparisonSide, comparison_json
from app.progress import Progress, Stage
from app.settings import Settings
from cache.errors import CacheError
from judges.agent_figures import scorecard_row
from judges.errors import installed
from judges.gc_tuning import freeze_loaded_objects
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.providers import LEXICAL, parse_judge
from judges.loader import JudgeCatalogue
from judges.result import LEXICAL_NOTICE, agent_folder
from mind2web2.metrics import agent_metrics, save_metrics
from mind2web2.report import NoAnswers, write_report
from mind2web2.results import eval_date
from mind2web2.utils.logging_setup import log_files
from rubrics.tree_json import BAD_STATES

_MaxAnswersOption = Annotated[
    int | None, typer.Option(min=1, help="Maximum concurrent answers of a task (default: 3).")
]
_OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Judge all answers again, even if their results are still valid.")
]


_DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug-judge",
        help="Let task files use the terminal, so that breakpoint() works: one answer at a time, without a deadline.",
    ),
]
_NO_DEADLINE_S = 365 * 86400


_AgentsOption = Annotated[list[str], typer.Option("--agent", help="Agent that wrote the answers. Repeatable.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folders:
    answers: AnswersOption = Path("answers")
    judges: JudgesOption = None
    cache: CacheOption = None
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("eval_results")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    max_tasks: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent tasks (default: 2).")] = None
    max_answers: _MaxAnswersOption = None
    max_pages: MaxPagesOption = None
    max_llm: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent model requests (default: 30).")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Modes:
    overwrite: _OverwriteOption = False
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Disable the reply cache.")] = False
    debug_judge: _DebugOption = False
    dry_run: DryRunOption = False
    as_json: JsonOption = False
    evidence: EvidenceOption = None


def evaluate(
    ctx: typer.Context,
    *,
    agent: _AgentsOption,
    task: TaskOption = None,
    folders: _Folders,
    model: JudgeOption = None,
    model_option: ModelOptions = None,
    limits: _Limits,
    modes: _Modes,
) -> None:
    """Judge a folder of answers without a server."""
    _refuse_arguments(ctx.args)
    agents = list(dict.fromkeys(agent))
    submissions = {each: find_answers(folders.answers, each, task or ()) for each in agents}
    _check_date()
    evaluated: dict[str, list[AnswerEvaluation]] = {}
    for each in agents:
        found = _evaluate_agent(each, submissions[each], task or (), folders, model, model_option, limits, modes)
        if found is not None:
            evaluated[each] = found
    if evaluated:
        _report(evaluated, folders.out, as_json=modes.as_json)


def _evaluate_agent(
    agent: str,
    submissions: Sequence[Submission],
    tasks: Sequence[str],
    folders: _Folders,
    model: str | None,
    model_option: list[str] | None,
    limits: _Limits,
    modes: _Modes,
) -> list[AnswerEvaluation] | None:
    """Judge the answers of one agent, and write its files. ``dry_run``: print an estimate, return None."""
    public = None if folders.cache is None else PublicCache(folders.cache)
    settings = judging_settings(
        judges=folders.judges,
        evidence=None if public is None else public.evidence_folder(agent),
        model=model,
        model_options=model_option,
        **(asdict(limits) | _limits_for_debugging() if modes.debug_judge else asdict(limits)),
        reply_cache_bytes=0 if modes.no_cache else None,
    )
    quiet_logging(settings)
    saved = "Finished results are saved; run the same command to resume."
    with baseline_suggested(), event_loop.resumable(saved):
        evaluated = event_loop.run(_run(settings, submissions, tasks, folders, public, modes))
    if evaluated is not None:
        _write_public_files(settings, agent, folders, evaluated, with_metrics=not tasks)
    return evaluated


def _refuse_arguments(arguments: Sequence[str]) -> None:
    if arguments:
        hint = "Give the folder of answers with --answers, and its subfolder of an agent with --agent."
        raise WrongUsage(f"unexpected argument {arguments[0]}", hint=hint)


def _limits_for_debugging() -> dict[str, int | None]:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WrongUsage("--debug-judge needs a terminal as input and output")
    return {"max_tasks": 1, "max_answers": 1, "job_deadline_s": _NO_DEADLINE_S}


def _check_date() -> None:
    try:
        eval_date()
    except ValueError as error:
        raise WrongUsage(str(error)) from error


async def _run(
    settings: Settings,
    submissions: Sequence[Submission],
    tasks: Sequence[str],
    folders: _Folders,
    public: PublicCache | None,
    modes: _Modes,
) -> list[AnswerEvaluation] | None:
    """Load the judges, decide which answers to judge, and judge them. ``dry_run``: print an estimate, return None."""
    async with AsyncExitStack() as stack:
        process_pool = create_fork_server_pool(settings, terminal=modes.debug_judge)
        stack.push_async_callback(process_pool.aclose)
        catalogue = await load_catalogue(settings, process_pool)
        check_tasks(tasks, catalogue)
        pages = await CurrentPages.open(settings.data_dir / "captures", public)
        planner = Planner(
            catalogue=catalogue,
            out=folders.out,
            model=parse_judge(settings.model).model,
            overwrite=modes.overwrite,
            pages=pages,
            parameters=settings.parameters,
            answers_root=folders.answers,
            evidence_policy=modes.evidence,
            forbidden_sources=settings.forbidden_sources,
        )
        planned = await asyncio.to_thread(planner.plan, submissions)
        if modes.dry_run:
            await asyncio.to_thread(_print_estimates, settings, planned, folders.out, pages, as_json=modes.as_json)
            return None
        return await _judge(settings, catalogue, planned, public, process_pool)


def _print_estimates(
    settings: Settings, planned: Sequence[PlannedAnswer], out: Path, pages: CurrentPages, *, as_json: bool
) -> None:
    estimates: list[Estimate | None] = []
    past: dict[str, list[dict[str, Any]]] = {}
    for one in planned:
        agent, task_id = one.folder.agent, one.folder.task_id
        if not one.to_judge:
            estimates.append(None)
            continue
        if task_id not in past:
            past[task_id] = past_results(out, task_id)
        sizes = [pages.size_of(agent, task_id, url) for url in one.urls[:MAX_PAGES]]
        facts = AnswerFacts(text=one.answer.text, sha256=one.answer.sha256, pages=sizes, past=past[task_id])
        estimates.append(estimate_answer(facts, settings.model, settings.prices))
    print_plan(planned, estimates, settings.model, as_json=as_json)


async def _judge(
    settings: Settings,
    catalogue: JudgeCatalogue,
    planned: Sequence[PlannedAnswer],
    public: PublicCache | None,
    process_pool: ForkServerPool,
) -> list[AnswerEvaluation]:
    console = stderr_console()
    pages = len({url for one in planned if one.to_judge for url in one.urls})
    console.print(
        f"{planned[0].folder.agent}: {sum(one.to_judge for one in planned)} of {counted(len(planned), 'answer')} to "
        f"judge with {settings.model}, {counted(pages, 'cited page')}",
        markup=False,
    )
    if settings.model == LEXICAL:
        console.print(LEXICAL_NOTICE, markup=False)
    async with open_runtime(settings, catalogue=catalogue, process_pool=process_pool) as runtime:
        if any(one.to_judge for one in planned):
            for warning in await runtime.models.warnings(None):
                console.print_line(f"warning: {warning}")
        freeze_loaded_objects()
        with ProgressBoard(console, len(planned), live=not process_pool.terminal) as board:
            return await evaluate_all(runtime, planned, _BoardWatcher(board), cache=public)


class _BoardWatcher:
    """Progress display of an evaluation."""

    def __init__(self, board: ProgressBoard) -> None:
        self._board = board

    def progress(self, planned: PlannedAnswer, progress: Progress) -> None:
        if progress.stage is Stage.CAPTURING:
            step = Step(stage="capturing", done=progress.pages_done, total=progress.pages_total, unit="pages")
        else:
            step = Step(stage="judging", done=progress.leaves_done, total=progress.leaves_total, unit="checks")
        self._board.update(_label(planned), step)

    def finished(self, evaluated: AnswerEvaluation) -> None:
        label = _label(evaluated.planned)
        reused = "  (from an earlier run)" if evaluated.reused else ""
        self._board.finish(label, finished_line(escape(label), evaluated.outcome) + reused)
        if evaluated.error is not None:
            self._board.print_line(escape(evaluated.error))


def _label(planned: PlannedAnswer) -> str:
    return f"{planned.folder.task_id} {planned.answer.name}"


def write_report_file(settings: Settings, out: Path, agent: str, cache: Path | None) -> Path:
    """Write the report of an agent, with screenshots of the page cache or else of the data folder.

    Raises:
        NoAnswers: There is no answer of the agent.
        ValueError: The metadata of an answer are invalid.
    """

    def stored(digests: Sequence[str]) -> Mapping[str, bytes]:
        return event_loop.run(stored_bodies(settings, digests))

    return write_report(agent, out, cache, stored_bodies=stored)


async def stored_bodies(settings: Settings, digests: Sequence[str]) -> dict[str, bytes]:
    """Return the bodies of captures that the data folder has."""
    blobs, found = await asyncio.to_thread(open_blobs, settings), {}
    for digest in digests:
        with suppress(CacheError):
            found[digest] = await blobs.get(digest)
    return found


def _write_public_files(
    settings: Settings,
    agent: str,
    folders: _Folders,
    evaluated: Sequence[AnswerEvaluation],
    *,
    with_metrics: bool,
) -> None:
    """Write what ``mind2web2 evaluate`` writes about a run: its log, the metrics and the report."""
    with log_files(agent_folder(folders.out, agent) / "logs", "evaluate") as logger:
        for one in evaluated:
            score = None if one.outcome.result is None else one.outcome.result["final_score"]
            logger.info("%s: %s", _label(one.planned), f"no result: {one.error}" if score is None else f"score {score}")
    try:
        if with_metrics:
            save_metrics(agent_metrics(agent, folders.answers, folders.out), folders.out)
        write_report_file(settings, folders.out, agent, folders.cache)
    except NoAnswers:
        return  # no answer could be judged
    except ValueError as error:
        stderr_console().print_line(f"warning: no metrics and report: {error}")


def _report(evaluated: Mapping[str, Sequence[AnswerEvaluation]], out: Path, *, as_json: bool) -> None:
    """Write the summaries, print the scores, and why some are open. Exit with INCOMPLETE if any is."""
    outcomes = [(agent, one.outcome) for agent, answers in evaluated.items() for one in answers]
    documents = []
    for agent, answers in evaluated.items():
        summary = write_summaries(out, agent, [one.outcome for one in answers if one.outcome.result is None])
        documents.append({"agent": agent, "answers": [_as_json(one) for one in answers], "summary": summary})
    if as_json:
        print_json(documents[0] if len(documents) == 1 else {"agents": documents})
    else:
        _print_scores(evaluated, out)
    again = "Then run the same command again: it judges only the answers with an open score."
    print_not_judged((outcome.result for _, outcome in outcomes), again=again)
    if not all(outcome.complete for _, outcome in outcomes):
        raise typer.Exit(Exit.INCOMPLETE)


def _print_scores(evaluated: Mapping[str, Sequence[AnswerEvaluation]], out: Path) -> None:
    console = stdout_console()
    console.print(answer_table((agent, one.outcome) for agent, answers in evaluated.items() for one in answers))
    rows = [scorecard_row(agent, [one.outcome for one in answers]) for agent, answers in evaluated.items()]
    console.print(scorecard(rows))
    for row in rows:
        if line := missing_answers_line(row.missing_answers):
            console.print_line(line)
    for line in _loss_lines(evaluated):
        console.print(line, soft_wrap=True)
    for agent in evaluated:
        console.print_line(f"report: {out / agent / 'report.html'}\nresults: {out / agent}")
    if len(evaluated) > 1:
        _print_comparisons(evaluated, out)


def _print_comparisons(evaluated: Mapping[str, Sequence[AnswerEvaluation]], out: Path) -> None:
    """Compare the first agent with each of the others."""
    sides = [
        ComparisonSide(name=agent, outcomes=[one.outcome for one in answers]) for agent, answers in evaluated.items()
    ]
    document = comparison_json(sides[0], sides[1:], is_tested=installed("statistics"))
    for comparison in document["comparisons"]:
        print_comparison(document["a"], comparison, corrected=len(sides) > 2, with_tasks=False)
    print_line(f"by task: assay results compare {' '.join(str(out / agent) for agent in evaluated)}")


_MAX_LOSSES = 5
_LEAST_LOSS = 0.005
_MAX_CLAIM_CHARS = 100


def _loss_lines(evaluated: Mapping[str, Sequence[AnswerEvaluation]]) -> list[str]:
    """Return the failed checks of all answers that cost most, with their URLs, as lines with markup."""
    losses: list[tuple[float, str]] = []
    for one in (one for answers in evaluated.values() for one in answers):
        if one.path is None:
            continue
        tree = outline(json.loads(one.path.read_bytes()))
        effects = Effects(tree)
        for leaf in tree.leaves:
            lost = effects[leaf.key].lost[0]
            if leaf.state in BAD_STATES and lost >= _LEAST_LOSS:
                said = leaf.fields.get("claim") or ("" if leaf.desc == leaf.name else leaf.desc)
                if leaf.fields.get("check") is not None:
                    said = "  ".join(filter(None, (said, leaf.fields.get("reasoning"))))
                place = f"{one.planned.folder.agent} {one.planned.folder.task_id} {leaf.id}"
                parts = (
                    f"-{lost:.2f}",
                    place,
                    shorten(said, _MAX_CLAIM_CHARS),
                    *(leaf.fields.get("sources") or ())[:2],
                )
                losses.append((lost, f"  {escape('  '.join(filter(None, parts)))}"))
    if not losses:
        return []
    return ["largest losses:", *(line for _, line in sorted(losses, key=lambda each: -each[0])[:_MAX_LOSSES])]


def _as_json(one: AnswerEvaluation) -> dict[str, object]:
    result = one.outcome.result
    return {
        "task_id": one.outcome.task_id,
        "answer_name": one.outcome.answer_name,
        "status": None if result is None else result.get("status", "complete"),
        "score": None if result is None else result.get("score"),
        "final_score": None if result is None else result["final_score"],
        "path": None if one.path is None else str(one.path),
        "reused": one.reused,
        "error": None if one.error is None else {"code": one.outcome.error_code, "detail": one.error},
    }
