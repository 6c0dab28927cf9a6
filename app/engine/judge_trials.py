"""Trial runs of task files in a child process without keys: field tests and lint.

``field_test`` and ``lint_judges`` start this module as a program. It reads one request as JSON from stdin and writes
its report to the file that its argument names, because task files may print to stdout.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from answers.citations import unique_urls
from app.engine.estimate import PageSize, claims_of, estimate_claims
from app.engine.runtime import Runtime, open_runtime
from app.engine.text_judging import runtime_with_pages, text_judge, texts_of
from app.errors import AppError
from app.observability.logs import Redactor, configure_logging
from app.settings import Settings, load_settings
from cache.confinement.privileges import DEFAULT_UID
from judges.analysis.overrides import finding_json, lint_of_result
from judges.analysis.task_tests.field_test import observe
from judges.analysis.task_tests.findings import report
from judges.analysis.task_tests.judge_file import PAGE, ExtractionRecorder, GeneratedValuesClient, judge_file
from judges.analysis.task_tests.leaves import EMPTY_ANSWER, ObservedRun, observed_run, scores_json
from judges.errors import JudgeBug, JudgeError
from judges.isolation.fork_server_pool import clean_environment, sandbox_user
from judges.isolation.process_limits import MIB, ScriptLimits, apply_limits, confine
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RequestObserver
from judges.llm.providers import LEXICAL
from judges.loader import load_judge
from judges.registry import Judge, JudgeKind
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task

PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", __name__)
"""Command of a trial, without its argument. Tests replace it."""
FIELD_TEST_S = 600.0
LINT_S = 120.0
LINT_ONE_S = 20.0
MEMORY_BYTES = 2048 * MIB
"""Address space limit of the child process. The program itself needs about half of it."""
TAIL_BYTES = 2_000
MAX_TESTED_CHARS = 256 * 1024
"""Limit of an answer on which a judge is tested: each of its hundreds of edits reads the whole text again."""
_ANY_PAGE = "A page that says nothing in particular."
_MADE_UP_ANSWER = f"An answer that is made up. See {PAGE}."


class TrialFailed(AppError):
    """The child process of a trial exited without a report."""


async def field_test(
    path: Path,
    answer: str,
    pages: Mapping[str, str],
    *,
    replies: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Test the task file at ``path`` on an answer and the texts of its pages.

    ``replies`` are extractions recorded with a model.

    Raises:
        TrialFailed: the answer is too long, or the judge ended the process or took too long.
    """
    _require_short(answer)
    request = {
        "path": str(path),
        "answer": answer,
        "pages": dict(pages),
        "replies": dict(replies or {}),
    }
    return await _in_child({"field_test": request}, timeout_s=FIELD_TEST_S)


def _require_short(answer: str) -> None:
    if len(answer) > MAX_TESTED_CHARS:
        raise TrialFailed(
            f"the answer has {len(answer):,} characters, and a judge is tested on answers of at most "
            f"{MAX_TESTED_CHARS:,}: test it on a shorter one, for example on the sections that the rubric reads"
        )


async def model_test(
    runtime: Runtime,
    judge: Judge,
    answer: str,
    model: str,
    *,
    observers: Sequence[RequestObserver] = (),
    on_stage: Callable[[str], None] = lambda stage: None,
) -> tuple[ObservedRun, dict[str, Any]]:
    """Judge an answer and an empty one with a model, then test the task file with the extracted values.

    Returns the run on the answer, and the report of ``field_test`` with the scores. ``on_stage`` is called with a
    description of each step before it.

    Raises:
        TrialFailed: the answer is too long, or the judge ended the child process or took too long.
    """
    _require_short(answer)
    if judge.path is None:
        raise TrialFailed(f"the judge of {judge.task!r} was not loaded from a file")
    replies: dict[str, str] = {}
    watching = (*observers, ExtractionRecorder(replies))
    judged = text_judge(runtime, judge, model, lambda client: ObservedLLM(client, watching))
    on_stage("capturing the cited pages and judging the answer")
    base = observed_run(await judged(answer))
    recorded = dict(replies)
    pages = await texts_of(runtime, unique_urls(answer))
    on_stage("judging an empty answer")
    try:
        empty: ObservedRun | str = observed_run(await judged(EMPTY_ANSWER))
    except JudgeBug as error:
        empty = _first_line(error)
    on_stage("judging the answer with edited values and citations")
    tested = await field_test(judge.path, answer, pages, replies=recorded)
    estimate = _estimate(runtime.settings, base, pages, answer) if model == LEXICAL else None
    scores = scores_json(base, empty, estimate, fields=tested["fields"])
    counts = {
        "passed": len(base.passed),
        "with_pages": sum(bool(leaf.sources) for leaf in base.leaves.values()),
        "leaves": len(base.leaves),
        "not_judged": list(base.not_judged),
    }
    return base, {**tested, "base": counts, "scores": scores}


def _estimate(settings: Settings, base: ObservedRun, pages: Mapping[str, str], answer: str) -> dict[str, Any]:
    """Return the estimated cost of judging ``answer`` with the default model, from the claims of ``base``."""
    model = str(Settings.model_fields["model"].default)
    sizes = [PageSize(len(text.encode()), 0) for text in pages.values()]
    estimate = estimate_claims(
        model, claims_of(base.result), sizes, settings.prices, answer=answer, basis="the claims of this run"
    )
    return {"model": model, **estimate.as_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Lint of one judge's rubric. ``findings`` is None if the rubric could not be built; ``error`` gives the reason.

    A finding has ``code``, ``node_id`` and ``message``.
    """

    findings: list[dict[str, str]] | None
    error: str | None = None

    def lines(self) -> list[str]:
        """Return one line per finding, or the reason why the rubric was not linted."""
        if self.findings is None:
            return [f"lint: not checked: {self.error}"]
        return [f"lint: {finding['node_id']}: {finding['message']}" for finding in self.findings]


async def lint_judges(judges: Iterable[Judge]) -> dict[str, LintReport]:
    """Run each native judge on made-up values and return the lint of its rubric, by task.

    Public scripts are skipped because they build their tree from a real answer. The field test and the result page
    lint them.
    """
    paths = {judge.task: str(judge.path) for judge in judges if judge.kind is JudgeKind.NATIVE and judge.path}
    if not paths:
        return {}
    try:
        reports = await _in_child({"lint": paths}, timeout_s=LINT_S)
    except TrialFailed as error:
        return {task: LintReport(findings=None, error=str(error)) for task in paths}
    return {task: LintReport(**report) for task, report in reports.items()}


async def _in_child(request: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """Execute a request in a child process, which ends if the caller is cancelled."""
    limits = ScriptLimits(memory_bytes=MEMORY_BYTES, cpu_s=math.ceil(timeout_s))
    with TemporaryDirectory(prefix="assay-trial-") as folder:
        out, printed = Path(folder) / "report.json", Path(folder) / "stderr"
        errors = os.open(printed, os.O_WRONLY | os.O_CREAT)  # a file, because the process limits bound its size
        try:
            child = await asyncio.create_subprocess_exec(
                *(*PROGRAM, str(out)),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=clean_environment() | {"TMPDIR": folder, "HOME": folder},
                cwd=folder,
                start_new_session=True,
            )
        finally:
            os.close(errors)
        sent = json.dumps({**request, "limits": limits.to_json(), "uid": sandbox_user(DEFAULT_UID)}).encode()
        try:
            async with asyncio.timeout(timeout_s):
                await child.communicate(sent)
        except TimeoutError as error:
            raise TrialFailed(f"the test of the judge took longer than {timeout_s:g} s") from error
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        return await asyncio.to_thread(_read_report, out, printed, await child.wait(), limits)


def _read_report(out: Path, printed: Path, code: int, limits: ScriptLimits) -> dict[str, Any]:
    if code != 0 or not out.is_file():
        raise TrialFailed(f"the judge could not be tested: {_exit_reason(code, _tail(printed), limits)}")
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return report


def _exit_reason(code: int, printed: str, limits: ScriptLimits) -> str:
    """Return why a child exited without a report."""
    last = printed.rpartition("\n")[2]
    if last.startswith("MemoryError") or "MemoryError" in last:
        return f"it needs more memory than its limit ({limits.memory_bytes // MIB} MiB)"
    if code == -signal.SIGXCPU:
        return f"it used more than {limits.cpu_s} s of processor time"
    if code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return printed or f"it ended its process (exit status {code})"


def _tail(path: Path) -> str:
    """Return the end of a child's stderr."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace").strip()


def main() -> None:
    """Execute the request on stdin within its limits. The folder of the report also contains the temporary files."""
    request = json.load(sys.stdin)
    apply_limits(ScriptLimits(**request.pop("limits")))
    files = [request["field_test"]["path"]] if "field_test" in request else request["lint"].values()
    confine(
        uid=request["uid"],
        parent=os.getppid(),
        judge_files=[Path(path) for path in files],
        writable=str(Path(sys.argv[1]).parent),
        processes=False,
        network=True,  # the egress proxy of the runtime listens in this process
    )
    try:
        done = asyncio.run(_execute(request))
    except (JudgeError, AppError) as error:
        sys.exit("\n".join(part for part in (getattr(error, "traceback", ""), str(error)) if part))
    Path(sys.argv[1]).write_text(json.dumps(done), encoding="utf-8")


async def _execute(request: Mapping[str, Any]) -> dict[str, Any]:
    configure_logging(Redactor(()), level="critical")
    with TemporaryDirectory(prefix="assay-trial-data-") as folder:
        settings = load_settings(data_dir=Path(folder), model=LEXICAL, judges=(), reply_cache_bytes=0)
        async with open_runtime(settings, in_process=True) as runtime:
            if "field_test" in request:
                return await _field_test(runtime, request["field_test"])
            async with runtime_with_pages(runtime, {}, _ANY_PAGE) as made_up:
                return {task: await _lint(made_up, Path(path)) for task, path in request["lint"].items()}


async def _field_test(runtime: Runtime, request: Mapping[str, Any]) -> dict[str, Any]:
    path, answer, pages = Path(request["path"]), str(request["answer"]), dict(request["pages"])
    judge = load_judge(path)
    async with runtime_with_pages(runtime, pages, _ANY_PAGE) as with_any_page:

        async def judged(text: str, wrap: Callable[[LLMClient], LLMClient]) -> Mapping[str, Any]:
            return await text_judge(with_any_page, judge, LEXICAL, wrap)(text)

        observed = await observe(
            judged,
            answer,
            file=judge_file(judge.source or b"", path.suffix),
            page_text="\n".join(pages.values()),
            replies=request["replies"],
        )
        findings = _findings(await judged(answer, lambda client: client), path)
    return {"fields": asdict(report(observed)), "lint": findings}


async def _lint(runtime: Runtime, path: Path) -> dict[str, Any]:
    """Return the fields of a ``LintReport`` for one task file."""
    try:
        async with asyncio.timeout(LINT_ONE_S):
            judge, client = load_judge(path), GeneratedValuesClient()
            judged = text_judge(runtime, judge, LEXICAL, lambda _: client)
            await judged(_MADE_UP_ANSWER)  # collects the extracted values
            result = await judged("\n".join((_MADE_UP_ANSWER, *client.texts)))
    except TimeoutError:
        return {"findings": None, "error": f"the judge did not return within {LINT_ONE_S:g} s on made-up values"}
    except JudgeError as error:
        return {"findings": None, "error": f"the judge failed on made-up values: {_first_line(error)}"}
    if result["status"] != "complete":
        return {"findings": None, "error": "the judge does not declare its rubric on made-up values"}
    return {"findings": _findings(result, path), "error": None}


def _findings(result: Mapping[str, Any], path: Path) -> list[dict[str, str]]:
    """Return the lint of a rubric, and of a task in YAML the fields that it does not read."""
    unread = compile_task(path.read_bytes(), path.name).unread_fields if path.name.endswith(YAML_SUFFIX) else ()
    message = "the field is extracted, but no claim, check or source names it; use it, or remove it"
    findings = [{"code": "unread_field", "node_id": field, "message": message} for field in unread]
    return [finding_json(each) for each in lint_of_result(result, file=path.name)] + findings


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    main()
