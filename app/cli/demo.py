"""``assay demo``: judge the shipped example end to end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.markup import escape

from app.console import event_loop
from app.console.connection import URL, JsonOption
from app.console.errors import Incomplete, ToolFailed
from app.console.not_judged import print_not_judged
from app.console.progress import JobBoard, ProgressBoard
from app.console.safe_console import SafeConsole
from app.console.scorecard import answer_table, scorecard
from app.console.streams import print_json, stderr_console, stdout_console
from app.console.tables import bounds_text
from app.demo.run import MODEL, DemoAnswer, DemoRun, check_differences, results_folder, run_demo, score_differences
from app.settings import Settings, load_settings
from assay_client import ClientError, Job
from cache.capture import CaptureOutcome
from judges.agent_figures import agent_summary, scorecard_row


def demo(as_json: JsonOption = False) -> None:
    """Judge the shipped example with the real service and browser. Needs no API key and no internet."""
    settings = load_settings()
    console = stderr_console()
    console.print(
        "The shipped example: three agents answer three tasks. A browser opens every cited page. The model "
        f"'{MODEL}' judges every claim by comparing words. Needs no API key and no internet."
    )
    try:
        finished = event_loop.run(_run_with_progress(settings, console))
    except ClientError as error:
        raise ToolFailed(f"the service failed: {error}") from error
    if as_json:
        print_json(_as_json(finished.answers) | {"check": finished.check})
    else:
        _print_scores(stdout_console(), finished, results_folder(settings))
    _end(console, finished)


async def _run_with_progress(settings: Settings, console: SafeConsole) -> DemoRun:
    """Run the demo and show its progress."""
    with _ConsoleWatcher(console) as watcher:
        return await run_demo(settings, watcher)


class _ConsoleWatcher:
    """Progress of the demo: its stages as lines, its jobs as bars."""

    def __init__(self, console: SafeConsole) -> None:
        self._console = console
        self._open = ExitStack()
        self._jobs: JobBoard | None = None

    def __enter__(self) -> _ConsoleWatcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def stage(self, text: str) -> None:
        self._open.close()
        self._console.print(f"[bold]>[/] {escape(text)}", soft_wrap=True)

    def submitted(self, labels: Mapping[str, str]) -> None:
        self._jobs = JobBoard(self._open.enter_context(ProgressBoard(self._console, len(labels))), labels)

    def polled(self, job: Job) -> None:
        if self._jobs is not None:
            self._jobs.show(job)


def _print_scores(console: SafeConsole, finished: DemoRun, out: Path) -> None:
    answers = finished.answers
    agents = sorted({answer.agent for answer in answers})
    console.print(answer_table((answer.agent, answer.outcome) for answer in answers))
    rows = [scorecard_row(agent, [answer.outcome for answer in answers if answer.agent == agent]) for agent in agents]
    console.print(scorecard(rows, title="scorecard"))
    print_not_judged(
        (answer.outcome.result for answer in answers),
        again="The demo expects this: its page asks for a password. docs/demo.md explains each score.",
    )
    console.print("results with tree, verdicts, quotes and pages:")
    for answer in answers:
        if answer.path is not None:
            console.print_line(f"  {answer.path}")
    console.print_line(f"summaries: {out}/<agent>/summary.json")
    _print_check(console, finished.check)
    first = next((answer.outcome.result for answer in answers if answer.outcome.result is not None), None)
    if first is not None:
        console.print_line(
            f"\nnext steps:\n{_activation()}"
            "  `assay serve` shows the results in a browser and over HTTP:\n"
            f"    {URL}/results/{first['id']}\n"
            f"    {URL}/v1/results/{first['id']}"
        )


def _activation() -> str:
    """Return how to put assay on the PATH, if it is not there."""
    script = Path(sys.prefix) / "bin" / "activate"
    if shutil.which("assay") is not None or not script.is_file():
        return ""
    shown = script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script
    return f"  `source {shown}` puts assay on the PATH\n"


def _print_check(console: SafeConsole, check: Mapping[str, Any] | None) -> None:
    """Print the outcomes of the citation check, marked as a baseline."""
    if check is None:
        return
    lines = [f"\nBASELINE check of the citations of {check['report']['name']}, without a model:"]
    for outcome, count in sorted(check["counts"].items()):
        lines.append(f"  {count} {outcome.replace('_', ' ')}")
    for name in ("precision", "recall"):
        figure = check["figures"][f"citation_{name}_liu2023"]
        lines.append(f"  citation {name} {bounds_text(figure)}, {figure['not_judged']} not judged")
    lines.append("  `assay check --html report.html` shows quotes and screenshots")
    for line in lines:
        console.print_line(line)


def _as_json(answers: Sequence[DemoAnswer]) -> dict[str, object]:
    agents = sorted({answer.agent for answer in answers})
    return {
        "answers": [
            {
                "agent": answer.agent,
                "task_id": answer.outcome.task_id,
                "answer_name": answer.outcome.answer_name,
                "score": None if answer.outcome.result is None else answer.outcome.result["score"],
                "status": None if answer.outcome.result is None else answer.outcome.result["status"],
                "error_code": None if answer.outcome.result is not None else answer.outcome.error_code,
                "path": None if answer.path is None else str(answer.path),
            }
            for answer in answers
        ],
        "agents": {
            agent: agent_summary(agent, [answer.outcome for answer in answers if answer.agent == agent])
            for agent in agents
        },
    }


def _end(console: SafeConsole, finished: DemoRun) -> None:
    """Compare the scores with the expected ones, and raise an error if they differ."""
    if not finished.sandboxed:
        console.print(
            "[yellow]Note:[/] the browser ran WITHOUT its sandbox, because this machine does not support it. The demo "
            "opens only its own pages. assay serve does not run without a sandbox unless "
            "ASSAY_BROWSER_UNSANDBOXED=true is set."
        )
    problems = score_differences(finished.answers) + check_differences(finished.check)
    if not problems:
        console.print("All scores are as expected, including the one that is open.")
        return
    if all(answer.outcome.complete for answer in finished.answers):
        raise ToolFailed("some scores are not as expected", hint="\n".join(problems))
    if any(page["outcome"] == CaptureOutcome.EGRESS_DENIED for page in _pages(finished)):
        problems.append(
            "The egress proxy denied pages of the demo. If another `assay serve` uses the same data folder,\n"
            "it judged some of the answers. Stop it, or set another folder in ASSAY_DATA_DIR."
        )
    raise Incomplete("some answers could not be judged as expected", hint="\n".join(problems))


def _pages(finished: DemoRun) -> list[Any]:
    results = (answer.outcome.result for answer in finished.answers)
    return [page for result in results if result is not None for page in result["pages"]]
