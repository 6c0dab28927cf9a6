"""``mind2web2 evaluate``: judge the answers of an agent, then compute the metrics and write the report."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from judges.errors import JudgeError
from judges.result import agent_folder
from mind2web2.browser_managers import shared_manager
from mind2web2.cli import _common as common
from mind2web2.eval_runner import ScriptsNotFound, is_script, resolve_scripts_dir
from mind2web2.evaluation import JudgedAnswer, TaskEvaluation
from mind2web2.llm_client import DEFAULT_JUDGE_MODEL, JudgeConfig, LLMClient
from mind2web2.metrics import agent_metrics, discover_tasks, format_report, is_without_result, save_metrics
from mind2web2.report import write_report
from mind2web2.results import eval_date
from mind2web2.semaphores import DualSemaphore
from mind2web2.submission import AnswerFile, MetadataError, TaskInfo, list_answer_files, load_metadata
from mind2web2.utils.logging_setup import log_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_agent(parser)
    common.add_answers_dir(parser)
    common.add_results_dir(parser)
    common.add_cache_dir(parser)
    parser.add_argument(
        "--eval-scripts-dir",
        type=Path,
        default=Path("eval_scripts"),
        metavar="DIR",
        help="folder of task scripts, or of versions named YYYY_MM_DD (default: eval_scripts)",
    )
    parser.add_argument("--eval-version", metavar="NAME", help="version of the task scripts (default: the newest)")
    common.add_task_list(parser, or_task=True)
    common.add_num_runs(parser)
    parser.add_argument(
        "--llm-provider",
        choices=["openai", "azure_openai"],
        default="openai",
        help="provider of the judge model (default: openai)",
    )
    parser.add_argument(
        "--judge-model",
        default=DEFAULT_JUDGE_MODEL,
        metavar="MODEL",
        help=f"model of all requests, whatever a script names (default: {DEFAULT_JUDGE_MODEL})",
    )
    parser.add_argument(
        "--judge-reasoning-effort",
        metavar="EFFORT",
        help="reasoning effort of the judge model (default: max for the default model, otherwise not sent)",
    )
    parser.add_argument(
        "--judge-temperature", type=_temperature, metavar="T", help="temperature of the judge model (default: not sent)"
    )
    parser.add_argument("--judge-base-url", metavar="URL", help="address of the model server")
    for flag, default, summary in (
        ("--max-tasks", 3, "concurrent tasks"),
        ("--max-answers", 3, "concurrent answers of a task"),
        ("--max-pages", 5, "concurrent captures"),
        ("--max-llm-requests", 30, "concurrent model requests"),
    ):
        parser.add_argument(
            flag, type=common.positive_int, default=default, metavar="N", help=f"{summary} (default: {default})"
        )
    parser.add_argument("--headless", action="store_true", help="no effect: captures are always headless")
    parser.add_argument("--overwrite", action="store_true", help="judge answers again whose result is up to date")


def run(arguments: argparse.Namespace) -> int:
    """Judge the answers. Return 1 if an answer has no result, else 0."""
    listed = common.read_task_list(arguments.task_list)
    scripts, judge = _scripts(arguments), _judge(arguments)
    answers = _selected_answers(arguments, listed, scripts)
    client = _open_client(arguments, judge)
    total = sum(len(found) for found in answers.values())
    common.print_note(f"answers: {total}, tasks: {len(answers)}, judge: {_described(judge)}, scripts: {scripts}")
    with log_files(agent_folder(arguments.results_dir, arguments.agent) / "logs", "evaluate") as logger:
        evaluation = _Evaluation(arguments, scripts, client, logger, total)
        asyncio.run(evaluation.run(answers))
    if not arguments.task:
        _write_metrics(arguments, listed)
    _write_report(arguments)
    if evaluation.judged < total:
        common.print_error(
            f"{total - evaluation.judged} of {total} answers have no result; the reasons are above and in "
            f"{agent_folder(arguments.results_dir, arguments.agent) / 'logs'}. Run the same command to judge them."
        )
        return common.FAILED
    return 0


@dataclass
class _Evaluation:
    """Evaluation of the selected answers. ``judged`` counts those that have a result."""

    arguments: argparse.Namespace
    scripts: Path
    client: LLMClient
    logger: logging.Logger
    total: int
    finished: int = 0
    judged: int = 0

    async def run(self, answers: Mapping[str, Sequence[AnswerFile]]) -> None:
        arguments = self.arguments
        tasks = asyncio.Semaphore(arguments.max_tasks)
        limits = DualSemaphore(asyncio.Semaphore(arguments.max_pages), asyncio.Semaphore(arguments.max_llm_requests))

        async def judge_task(task_id: str) -> None:
            async with tasks:
                await self._judge_task(task_id, answers[task_id], limits)

        async with shared_manager(arguments.max_pages), asyncio.TaskGroup() as group:
            for task_id in answers:
                group.create_task(judge_task(task_id))

    async def _judge_task(self, task_id: str, answers: Sequence[AnswerFile], limits: DualSemaphore) -> None:
        arguments, script = self.arguments, self.scripts / f"{task_id}.py"
        if not is_script(script):
            for answer in answers:
                self._report(task_id, answer.name, f"no result: there is no task script {script}")
            return
        evaluation = TaskEvaluation(
            agent=arguments.agent,
            task_id=task_id,
            client=self.client,
            script_path=script,
            cache_root=arguments.cache_dir,
            out=arguments.results_dir,
            semaphore=limits,
            max_answers=arguments.max_answers,
            overwrite=arguments.overwrite,
        )
        await evaluation.judge_all(answers, self.logger, self._finish)

    def _finish(self, outcome: JudgedAnswer) -> None:
        if outcome.result is None:
            message = f"no result: {outcome.failure.message}"
        elif is_without_result(outcome.result):
            message = "no result: some claims could not be judged; see the log of the answer"
        else:
            self.judged += 1
            message = f"score {float(outcome.result.get('final_score') or 0.0):.2f}"
            message += " (up to date, not judged again)" if outcome.reused else ""
        self._report(outcome.folder.task_id, outcome.folder.answer_name, message)

    def _report(self, task_id: str, answer_name: str, message: str) -> None:
        self.finished += 1
        self.logger.info("%s %s: %s", task_id, answer_name, message)
        common.print_note(f"[{self.finished}/{self.total}] {task_id} {answer_name}: {' '.join(message.split())}")


def _scripts(arguments: argparse.Namespace) -> Path:
    try:
        return resolve_scripts_dir(arguments.eval_scripts_dir, arguments.eval_version)
    except ScriptsNotFound as error:
        raise common.CommandError(f"{error}; see --eval-scripts-dir and --eval-version", common.WRONG_USAGE) from error


def _judge(arguments: argparse.Namespace) -> JudgeConfig:
    return JudgeConfig(
        arguments.judge_model,
        reasoning_effort=arguments.judge_reasoning_effort,
        temperature=arguments.judge_temperature,
    )


def _open_client(arguments: argparse.Namespace, judge: JudgeConfig) -> LLMClient:
    try:
        eval_date()  # an invalid date would leave every answer without a result
        return LLMClient(arguments.llm_provider, is_async=True, judge=judge, base_url=arguments.judge_base_url)
    except (JudgeError, ValueError) as error:
        raise common.CommandError(str(error), common.WRONG_USAGE) from error


def _selected_answers(
    arguments: argparse.Namespace, listed: Sequence[TaskInfo] | None, scripts: Path
) -> dict[str, list[AnswerFile]]:
    """Return the answers to judge by task. By default, tasks without a task script are left out."""
    agent, root = arguments.agent, arguments.answers_dir
    if arguments.task or listed is not None:
        names = list(dict.fromkeys(arguments.task or [task.task_id for task in listed or ()]))
    else:
        names = [task.task_id for task in discover_tasks(agent, root)]
        without = [name for name in names if not is_script(scripts / f"{name}.py")]
        if without:
            common.print_note(f"left out, because {scripts} has no script for them: {', '.join(without)}")
        names = [name for name in names if name not in without]
    found = {name: answers for name in names if (answers := _runs(root / agent / name, arguments.num_runs))}
    if not found:
        raise common.CommandError(
            f"no answers of {agent!r} to judge in {root / agent}: add <task_id>/answer_<k>.md files for tasks with a "
            f"script in {scripts}"
        )
    try:
        for answer in chain.from_iterable(found.values()):
            load_metadata(answer)  # the metrics need them; the error must not come after the answers were judged
    except MetadataError as error:
        raise common.CommandError(str(error)) from error
    return found


def _runs(folder: Path, num_runs: int | None) -> list[AnswerFile]:
    """Return the answers in the folder of a task; those above the number of runs do not count in the metrics."""
    return [answer for answer in list_answer_files(folder) if num_runs is None or answer.run <= num_runs]


def _write_metrics(arguments: argparse.Namespace, listed: Sequence[TaskInfo] | None) -> None:
    agent, results = arguments.agent, arguments.results_dir
    try:
        metrics = agent_metrics(agent, arguments.answers_dir, results, listed, arguments.num_runs, arguments.task_list)
    except ValueError as error:
        raise common.CommandError(f"no metrics: {error}") from error
    common.print_line(format_report(metrics))
    common.print_note(f"metrics: {save_metrics(metrics, results)}")


def _write_report(arguments: argparse.Namespace) -> None:
    try:
        path = write_report(arguments.agent, arguments.results_dir, arguments.cache_dir, on_problem=common.print_note)
    except ValueError as error:
        common.print_note(f"no report: {error}")
    else:
        common.print_line(f"report: {path}")


def _described(judge: JudgeConfig) -> str:
    options = [f"{name} {value}" for name, value in judge.request_params().items() if name != "model"]
    return " ".join([judge.model, *options])


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 2.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 2")
    return value
