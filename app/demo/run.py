"""Run of the demo: start the demo website and the real service, submit the shipped answers, stop everything.

``app.cli.demo`` displays the progress and the scores.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any, Protocol

from answers.public_layout import read_folder
from answers.submission import Submission
from app.clock import SystemClock
from app.demo.expected import EXPECTED, EXPECTED_CHECK, examples_dir, report_path
from app.demo.site import DemoSite
from app.engine.result_folder import write_result, write_summaries
from app.errors import AppError
from app.interruption import INTERRUPTION
from app.settings import Settings
from app.storage.embedded import EmbeddedPostgres
from assay_client import AsyncClient, ClientError, Job
from judges.agent_figures import AnswerOutcome, score_of, word_count
from judges.result import AnswerFolder
from rubrics.scoring import bounded_score

MODEL = "lexical"
WAIT_S = 600.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAnswer:
    """One answer of the demo with its outcome. ``path`` is the result file, None if there is no result."""

    agent: str
    outcome: AnswerOutcome
    path: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """Outcome of the demo.

    ``sandboxed`` tells whether the browser ran in its sandbox.
    """

    answers: tuple[DemoAnswer, ...]
    sandboxed: bool
    check: Mapping[str, Any] | None = None
    """Document of the citation check of the shipped report; None if the check failed."""


class DemoObserver(Protocol):
    """Observer of the demo."""

    def stage(self, text: str) -> None:
        """Called at the start of each stage."""

    def submitted(self, labels: Mapping[str, str]) -> None:
        """Called after all answers were submitted. ``labels`` maps job ids to displayed names."""

    def polled(self, job: Job) -> None: ...


def shipped_submissions() -> list[Submission]:
    """Return the answers of all demo agents to all demo tasks."""
    agents = sorted(path.name for path in examples_dir().iterdir() if path.is_dir())
    return [submission for agent in agents for submission in read_folder(examples_dir(), agent)]


def results_folder(settings: Settings) -> Path:
    """Return the folder of the demo's results, in the public layout."""
    return settings.data_dir / "demo" / "eval_results"


async def run_demo(settings: Settings, observer: DemoObserver) -> DemoRun:
    """Start a service, judge the shipped answers with it, and stop it.

    Raises:
        DemoPortTaken, ServiceDidNotStart: The website or the service cannot be started.
        ClientError: A request to the service failed.
    """
    submissions = shipped_submissions()
    if settings.database_url is None:
        INTERRUPTION.at_forced_exit(EmbeddedPostgres(settings.data_dir).request_stop)
    key = next((configured.key for configured in settings.configured_keys), None)
    observer.stage("starting the demo website")
    async with DemoSite(reuse=True) as site:
        observer.stage("starting the service: PostgreSQL, browser, workers")
        environment = _service_environment(settings, site)
        log = settings.data_dir / "demo" / "serve.log"
        async with running_service(environment, log, api_key=key) as url, AsyncClient(url, api_key=key) as client:
            observer.stage(f"submitting {sum(len(submission.answers) for submission in submissions)} answers to {url}")
            judged = await _judge(client, submissions, observer)
            observer.stage(f"checking the citations of {report_path().name}")
            check = await _check(client)
            sandbox = (await client.get_health())["sandbox"]
            observer.stage("stopping the service and the website")
    answers = await asyncio.to_thread(_write_results, results_folder(settings), judged)
    return DemoRun(answers=tuple(answers), sandboxed=sandbox != "off", check=check)


async def _check(client: AsyncClient) -> Mapping[str, Any] | None:
    """Check the shipped report and return its document; None if the job failed."""
    text = await asyncio.to_thread(report_path().read_text, "utf-8")
    accepted = await client.create_check({"name": report_path().name, "text": text, "model": MODEL})
    await client.wait([accepted["id"]], timeout_s=WAIT_S, poll_s=POLL_S)
    return (await client.get_check(accepted["id"]))["document"]


def check_differences(check: Mapping[str, Any] | None) -> list[str]:
    """Return a message if the outcomes of the citation check differ from ``EXPECTED_CHECK``."""
    counts = None if check is None else check["counts"]
    return [] if counts == dict(EXPECTED_CHECK) else [f"report.md: {counts}, expected {dict(EXPECTED_CHECK)}"]


def score_differences(answers: Iterable[DemoAnswer]) -> list[str]:
    """Return a message for each score that differs from ``EXPECTED``."""
    messages: list[str] = []
    for answer in answers:
        if answer.outcome.result is None:
            messages.append(f"{answer.agent} {answer.outcome.task_id}: no result, {answer.outcome.error_code}")
            continue
        expected = EXPECTED[answer.agent][answer.outcome.task_id]
        score = score_of(answer.outcome.result) or bounded_score(0.0, 0.0)
        if not (isclose(score.low, expected.low) and isclose(score.high, expected.high)):
            messages.append(
                f"{answer.agent} {answer.outcome.task_id}: {score.low:.4f} to {score.high:.4f}, "
                f"expected {expected.low:.4f} to {expected.high:.4f}"
            )
    return messages


def _service_environment(settings: Settings, site: DemoSite) -> dict[str, str]:
    return {
        "ASSAY_DATA_DIR": str(settings.data_dir.expanduser().absolute()),
        "ASSAY_MODEL": MODEL,
        # The demo opens only its own pages, so it may run on machines without a browser sandbox.
        "ASSAY_BROWSER_UNSANDBOXED": "true",
        "ASSAY_EGRESS_ALLOW": ",".join(sorted({*settings.egress_allow, site.egress_allow})),
    }


async def _judge(
    client: AsyncClient, submissions: Sequence[Submission], observer: DemoObserver
) -> list[tuple[Submission, Job, Mapping[str, Any] | None]]:
    """Submit the answers, wait, and return the jobs with their results in the order of ``submissions``."""
    by_job: dict[str, Submission] = {}
    labels: dict[str, str] = {}
    for submission in submissions:
        answers = [(answer.name, answer.text) for answer in submission.answers]
        receipt = await client.submit(submission.agent, submission.task_id, answers, model=MODEL)
        for job in receipt.jobs:
            by_job[job.id] = submission
            labels[job.id] = f"{submission.agent} {submission.task_id}"
    observer.submitted(labels)
    jobs = await client.wait(by_job, timeout_s=WAIT_S, poll_s=POLL_S, on_update=observer.polled)
    return [
        (by_job[job.id], job, None if job.result_id is None else await client.get_result(job.result_id)) for job in jobs
    ]


def _write_results(out: Path, judged: Sequence[tuple[Submission, Job, Mapping[str, Any] | None]]) -> list[DemoAnswer]:
    """Write results and summaries in the public layout. Blocks on the disk."""
    answers: list[DemoAnswer] = []
    for submission, job, result in judged:
        (answer,) = [one for one in submission.answers if one.name == job.raw["answer"]]
        folder = AnswerFolder(out=out, agent=submission.agent, task_id=submission.task_id, answer_name=answer.name)
        path = None if result is None else write_result(folder, answer, result, finished_at=SystemClock().now())
        outcome = AnswerOutcome(
            task_id=submission.task_id,
            answer_name=answer.name,
            words=word_count(answer.text),
            result=result,
            error_code=job.error.code if job.error else job.status,
        )
        answers.append(DemoAnswer(agent=submission.agent, outcome=outcome, path=path))
    for agent in sorted({one.agent for one in answers}):
        write_summaries(out, agent, [one.outcome for one in answers if one.agent == agent and one.path is None])
    return answers


HOST = "127.0.0.1"
START_S = 120.0
STOP_S = 40.0
"""Longer than the drain timeout of a worker."""
_POLL_S = 0.1
_LOG_TAIL_LINES = 15


class ServiceDidNotStart(AppError):
    """The service exited or was not ready in time. The message contains the end of its log."""


@asynccontextmanager
async def running_service(environment: Mapping[str, str], log: Path, *, api_key: str | None) -> AsyncIterator[str]:
    """Start the service on a free loopback port, yield its URL when it is ready, and stop it at the end of the block.

    ``environment`` is added to the environment of this process. The log of the service goes to the file ``log``.

    Raises:
        ServiceDidNotStart: The service exited or was not ready in time.
    """
    port = _free_port()
    # The command ``env`` sets the variables, because only app/settings.py may access the environment.
    settings = [f"{name}={value}" for name, value in environment.items()]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "env", *settings, sys.executable, "-m", "assay", "serve", "--host", HOST, "--port", str(port),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    url = f"http://{HOST}:{port}"
    end = signal.SIGTERM
    try:
        await _until_ready(url, process, log, api_key)
        yield url
    except asyncio.CancelledError:
        end = signal.SIGINT  # without waiting for running jobs
        raise
    finally:
        await _stop(process, end)


async def _until_ready(url: str, process: asyncio.subprocess.Process, log: Path, api_key: str | None) -> None:
    try:
        async with asyncio.timeout(START_S), AsyncClient(url, api_key=api_key) as client:
            while process.returncode is None:
                with contextlib.suppress(ClientError):
                    if await client.healthy():
                        return
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise ServiceDidNotStart(f"the service is not ready after {START_S:g} s; end of {log}:\n{_tail(log)}") from None
    raise ServiceDidNotStart(f"the service exited with code {process.returncode}; end of {log}:\n{_tail(log)}")


async def _stop(process: asyncio.subprocess.Process, end: signal.Signals) -> None:
    """Stop the service with a signal. Kill its process group if it does not exit within STOP_S."""
    if process.returncode is None:
        process.send_signal(end)
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:])
