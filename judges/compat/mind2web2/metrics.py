"""Metrics of an agent as the public toolkit reports them: ``metrics.json``.

A missing answer, a missing result and a stale result count as 0. Our own statistics, which treat an answer that was not
judged as unknown, are in ``judges.agent_figures``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from judges.agent_figures import over_runs
from judges.result import write_json
from mind2web2.results import answer_output_dir, as_object, load_latest_result
from mind2web2.submission import AnswerFile, TaskInfo, count_words, list_answer_files, load_metadata
from rubrics.scoring import is_success
from rubrics.verdict import Outcome, Reason

__all__ = [
    "AnswerRecord",
    "ResultState",
    "agent_metrics",
    "collect_records",
    "compute_metrics",
    "discover_tasks",
    "find_answers",
    "format_report",
    "is_success",
    "is_without_result",
    "save_metrics",
    "valid_score",
]

METRICS_FILE = "metrics.json"
LEADERBOARD_RUNS = 3
MAX_DEFAULT_RUNS = 1000
UNKNOWN = "-"

SCORED_BY_THE_TOOLKIT = frozenset(
    {Reason.CAPTURE_FAILED, Reason.CAPTURE_BLOCKED, Reason.EGRESS_DENIED, Reason.LLM_OUTPUT_UNUSABLE}
)
"""Reasons of unjudged leaves that fail a check in the public toolkit: a page that cannot be had, a rejected request."""

Metrics: TypeAlias = dict[str, Any]


class ResultState(StrEnum):
    """What the newest result of an answer is worth."""

    JUDGED = "judged"
    MISSING = "missing"
    """There is no readable result, or it is incomplete because judging failed."""
    STALE = "stale"
    """The answer changed after it was judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """One run of one task.

    Attributes:
        words: Words of the answer; None if there is no answer.
        time_seconds: Time that the agent reported, if any.
        score: Compatible score in [0, 1]; 0 without a current result.
        low, high: Bounds of the score in our reading, in which an unjudged claim is unknown.
        judge: Model, reasoning effort and temperature of the judge as JSON; None if the result does not state them.
        judge_model: Model that the result names, "unknown" if it names none.
        served_models: Number of replies by the model name that the server reported.
        rejected_requests: Number of requests that the judge's provider rejected because of their content.
    """

    task_id: str
    run: int
    words: int | None = None
    time_seconds: float | None = None
    state: ResultState = ResultState.MISSING
    score: float = 0.0
    low: float = 0.0
    high: float = 0.0
    judge: str | None = None
    judge_model: str = "unknown"
    served_models: Mapping[str, int] = field(default_factory=dict)
    rejected_requests: int = 0

    @property
    def answered(self) -> bool:
        return self.words is not None


def valid_score(value: object) -> float | None:
    """Return a number in [0, 1], None for anything else in a result file."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def discover_tasks(
    agent: str, answers_root: str | Path | None, results_root: str | Path | None = None
) -> list[TaskInfo]:
    """Return the tasks for which the agent has answers, sorted. For ``results_root``, see ``find_answers``."""
    roots = [Path(root) for root in (answers_root, results_root) if root is not None]
    folder = next((root / agent for root in roots if (root / agent).is_dir()), None)
    names = [] if folder is None else sorted(path.name for path in folder.iterdir() if path.is_dir())
    return [
        TaskInfo(name)
        for name in names
        if not name.startswith(".") and find_answers(agent, name, answers_root, results_root)
    ]


def find_answers(
    agent: str, task_id: str, answers_root: str | Path | None, results_root: str | Path | None = None
) -> dict[int, AnswerFile]:
    """Return the answers to a task by run.

    If ``answers_root`` is None or has no folder of the agent, the copies beside the results are used.
    """
    folder = None if answers_root is None else Path(answers_root) / agent
    if folder is not None and (folder.is_dir() or results_root is None):
        return {answer.run: answer for answer in list_answer_files(folder / task_id)}
    if results_root is None:
        return {}
    task = Path(results_root) / agent / task_id
    folders = [path for path in task.iterdir() if path.is_dir()] if task.is_dir() else []
    copies = (copy for path in folders for copy in list_answer_files(path) if copy.path.stem == path.name)
    return {copy.run: AnswerFile(task_id, copy.run, copy.path) for copy in sorted(copies, key=lambda copy: copy.run)}


def collect_records(
    agent: str,
    tasks: Iterable[TaskInfo | str],
    answers_root: str | Path | None,
    results_root: str | Path,
    num_runs: int | None = None,
) -> tuple[list[AnswerRecord], int]:
    """Read the answers and newest results of the tasks. Return one record per task and run, and the number of runs.

    The number of runs is ``num_runs``, by default the highest run of an answer (at least 1). Blocks on disk reads.

    Raises:
        MetadataError: The metadata of an answer are invalid.
        ValueError: An answer is not UTF-8, or its number is not a plausible run and ``num_runs`` is None.
    """
    task_ids = list(dict.fromkeys(task if isinstance(task, str) else task.task_id for task in tasks))
    answers = {task_id: find_answers(agent, task_id, answers_root, results_root) for task_id in task_ids}
    highest = max((run for found in answers.values() for run in found), default=1)
    if num_runs is None and highest > MAX_DEFAULT_RUNS:
        raise ValueError(f"an answer_{highest}.md has an implausible number: rename it, or set the number of runs")
    k = num_runs or highest
    records = []
    for task_id in task_ids:
        for run in range(1, k + 1):
            answer = answers[task_id].get(run)
            if answer is None:
                records.append(AnswerRecord(task_id=task_id, run=run))
            else:
                records.append(_record(answer, answer_output_dir(results_root, agent, task_id, answer.name)))
    return records, k


def compute_metrics(
    records: Sequence[AnswerRecord],
    tasks: Iterable[TaskInfo],
    k: int,
    agent_name: str = "",
    task_list: str | Path | None = None,
) -> Metrics:
    """Return the content of ``metrics.json``.

    Args:
        records: One record per task and run, as returned by ``collect_records``. A missing one counts as 0.
        task_list: Path of the task list that selected the tasks; None if they were found by their answers.

    Raises:
        ValueError: There is no task or no run.
    """
    domains = {task.task_id: task.domain for task in tasks}
    if not domains or k < 1:
        raise ValueError("there is no task or no run to compute metrics of")
    by_place = {(record.task_id, record.run): record for record in records}
    table = {
        task_id: [by_place.get((task_id, run), AnswerRecord(task_id=task_id, run=run)) for run in range(1, k + 1)]
        for task_id in domains
    }
    every = [record for row in table.values() for record in row]
    judged = [record for record in every if record.state is ResultState.JUDGED]
    answered = [record for record in every if record.answered]
    served: Counter[str] = Counter()
    for record in judged:
        served.update(record.served_models)
    metrics: Metrics = {
        "agent_name": agent_name,
        "task_selection": {
            "source": "answers" if task_list is None else "task_list",
            "path": None if task_list is None else str(task_list),
            "task_ids_sha256": hashlib.sha256("\n".join(sorted(domains)).encode()).hexdigest(),
        },
        "num_tasks": len(domains),
        "num_runs": k,
        **_scores(table),
        "pass_at_k": {"k": k, "value": fmean(_passed(row) for row in table.values())},
        "time_minutes": _time(table, answered),
        "answer_length_words": _over_runs(table, lambda record: record.words),
        "judge_models": sorted({record.judge_model for record in judged}),
        "served_models": dict(sorted(served.items())),
        "missing_answers": [_place(record) for record in every if not record.answered],
        "missing_results": [_place(record) for record in answered if record.state is ResultState.MISSING],
        "stale_results": [_place(record) for record in answered if record.state is ResultState.STALE],
        "rejected_requests": [
            _place(record) | {"requests": record.rejected_requests} for record in judged if record.rejected_requests
        ],
        "per_task": {
            task_id: {"scores": [record.score for record in row], "pass": _passed(row)}
            for task_id, row in table.items()
        },
        "by_domain": _by_domain(table, domains),
        "partial_completion_bounds": _bounds(table),
    }
    return metrics | {"leaderboard_entry": _leaderboard_entry(metrics, judged)}


def agent_metrics(
    agent: str,
    answers_root: str | Path | None,
    results_root: str | Path,
    tasks: Sequence[TaskInfo] | None = None,
    num_runs: int | None = None,
    task_list: str | Path | None = None,
) -> Metrics:
    """Read the files of an agent and return its metrics. ``tasks`` defaults to those with answers.

    Raises:
        MetadataError, ValueError: as ``collect_records`` and ``compute_metrics``.
    """
    chosen = discover_tasks(agent, answers_root, results_root) if tasks is None else tasks
    records, k = collect_records(agent, chosen, answers_root, results_root, num_runs)
    return compute_metrics(records, chosen, k, agent, task_list)


def save_metrics(metrics: Metrics, target: str | Path) -> Path:
    """Write the metrics and return the path of the file.

    ``target`` is a ``.json`` file, or the results folder, in which the file is ``<agent>/metrics.json``.
    """
    path = Path(target)
    if path.suffix != ".json":
        agent = str(metrics["agent_name"])
        path = (path if path.name == agent else path / agent) / METRICS_FILE
    write_json(path, metrics)
    return path


def format_report(metrics: Metrics) -> str:
    """Return the metrics as lines of text."""
    selection = metrics["task_selection"]
    source = selection["path"] or "tasks with answers"
    k = metrics["pass_at_k"]["k"]
    rows = [
        ("Agent", metrics["agent_name"] or UNKNOWN),
        ("Tasks", f"{metrics['num_tasks']} ({source}), {_counted(metrics['num_runs'], 'run')}"),
        ("Partial Completion", _spread_text(metrics["partial_completion"], ".4f")),
        ("Success Rate", _spread_text(metrics["success_rate"], ".4f")),
        (f"Pass@{k}", f"{metrics['pass_at_k']['value']:.4f}"),
        ("Time (minutes)", _time_text(metrics["time_minutes"])),
        ("Answer Length (words)", _spread_text(metrics["answer_length_words"], ".1f")),
        ("Judge", ", ".join(metrics["judge_models"]) or UNKNOWN),
    ]
    if metrics["served_models"]:
        rows.append(("Served by", ", ".join(f"{name} ({n})" for name, n in metrics["served_models"].items())))
    for title, key in (
        ("Missing answers", "missing_answers"),
        ("Missing results", "missing_results"),
        ("Stale results", "stale_results"),
    ):
        rows.append((title, _places_text(metrics[key])))
    rejected = metrics["rejected_requests"]
    rows.append(
        ("Rejected requests", f"{sum(one['requests'] for one in rejected)} in {_counted(len(rejected), 'answer')}")
    )
    bounds = metrics["partial_completion_bounds"]
    rows.append(("Bounds if unknown", f"Partial Completion {bounds['low']:.4f} to {bounds['high']:.4f}"))
    for domain, values in (metrics["by_domain"] or {}).items():
        partial, success = values["partial_completion"]["mean"], values["success_rate"]["mean"]
        rows.append(
            (f"  {domain}", f"{_counted(values['num_tasks'], 'task')}, {partial:.4f} partial, {success:.4f} success")
        )
    entry = metrics["leaderboard_entry"]
    missing = f"none: needs a task list, {LEADERBOARD_RUNS} runs and one known judge"
    rows.append(("Leaderboard entry", missing if entry is None else json.dumps(entry)))
    width = max(len(title) for title, _ in rows)
    return "\n".join(f"{title:<{width}}  {value}" for title, value in rows)


def is_without_result(result: Mapping[str, Any]) -> bool:
    """Return whether the public toolkit would have no result: judging failed because of an outage or a broken script.

    A page that cannot be had, and a request rejected because of its content, fail a check there; the answer is scored.
    In our reading, such a result is also ``incomplete``.
    """
    if result.get("status", "complete") == "complete":
        return False
    reasons = set(_unjudged_reasons(result))
    return bool(result.get("cut_short")) or not reasons or not reasons <= SCORED_BY_THE_TOOLKIT


def _unjudged_reasons(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why leaves were not judged, and those of failed extractions."""
    yield from map(str, result.get("extraction_reasons") or ())
    nodes = [as_object(as_object(part).get("verification_tree")) for part in result.get("eval_breakdown") or ()]
    while nodes:
        node = nodes.pop()
        nodes += [as_object(child) for child in node.get("children") or ()]
        if node.get("outcome") == Outcome.NOT_JUDGED:
            reason = str(node.get("reason"))
            faults = {str(fault) for vote in node.get("votes") or () if (fault := as_object(vote).get("fault"))}
            yield from faults if reason == Reason.NO_MAJORITY and faults else [reason]


def _record(answer: AnswerFile, output: Path) -> AnswerRecord:
    data = answer.read_bytes()
    try:
        words = count_words(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{answer.path}: is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    seconds = (load_metadata(answer) or {}).get("time_seconds")
    record = AnswerRecord(
        task_id=answer.task_id,
        run=answer.run,
        words=words,
        time_seconds=None if seconds is None else float(seconds),
        high=1.0,
    )
    result = load_latest_result(output)
    if result is None:
        return record
    if _is_stale(result, data, replace(answer, path=output / answer.name)):
        return replace(record, state=ResultState.STALE)
    return _with_result(record, result)


def _with_result(record: AnswerRecord, result: Mapping[str, Any]) -> AnswerRecord:
    score, bounds = valid_score(result.get("final_score")), as_object(result.get("score"))
    low, high = valid_score(bounds.get("low")), valid_score(bounds.get("high"))
    if score is None or is_without_result(result):
        return replace(record, low=0.0 if low is None else low, high=1.0 if high is None else high)
    judge, usage = as_object(result.get("judge")), as_object(result.get("judge_usage"))
    rejections = usage.get("rejections")
    return replace(
        record,
        state=ResultState.JUDGED,
        score=score,
        low=score if low is None else low,
        high=score if high is None else high,
        judge=json.dumps(judge, sort_keys=True) if _first_name(judge.get("model")) else None,
        judge_model=_first_name(judge.get("model"), result.get("judge_model")) or "unknown",
        served_models={name: n for name, n in as_object(usage.get("served_models")).items() if isinstance(n, int)},
        rejected_requests=len(rejections) if isinstance(rejections, list) else 0,
    )


def _is_stale(result: Mapping[str, Any], data: bytes, copy: AnswerFile) -> bool:
    """Return whether the judged answer differs. A result without a hash was made from the copy beside it."""
    known = result.get("answer_sha256")
    if known is None:
        return copy.path.is_file() and copy.read_bytes() != data
    return bool(known != hashlib.sha256(data).hexdigest())


def _first_name(*values: object) -> str | None:
    """Return the first name of a model."""
    return next((value for value in values if isinstance(value, str) and value not in ("", "unknown")), None)


_Table: TypeAlias = Mapping[str, Sequence[AnswerRecord]]
"""Records by task, then run."""


def _scores(table: _Table) -> dict[str, Any]:
    return {
        "partial_completion": _over_runs(table, lambda record: record.score),
        "success_rate": _over_runs(table, lambda record: float(is_success(record.score))),
    }


def _over_runs(table: _Table, value: Callable[[AnswerRecord], float | None]) -> dict[str, Any] | None:
    """Return the mean of each run over its known values, and their mean and population deviation; None without any."""
    spread = over_runs(map(value, records) for records in zip(*table.values(), strict=True))
    return None if spread is None else asdict(spread)


def _time(table: _Table, answered: Sequence[AnswerRecord]) -> dict[str, Any] | None:
    minutes = _over_runs(table, lambda record: None if record.time_seconds is None else record.time_seconds / 60)
    if minutes is None:
        return None
    with_time = sum(record.time_seconds is not None for record in answered)
    return minutes | {"answers_with_time": with_time, "answers": len(answered)}


def _by_domain(table: _Table, domains: Mapping[str, str | None]) -> dict[str, Any] | None:
    names = sorted({domain for domain in domains.values() if domain is not None})
    by_domain = {}
    for name in names:
        own = {task_id: row for task_id, row in table.items() if domains[task_id] == name}
        by_domain[name] = {"num_tasks": len(own), **_scores(own)}
    return by_domain or None


def _bounds(table: _Table) -> dict[str, float]:
    """Return the bounds of Partial Completion if an unjudged claim and a missing result are unknown."""
    every = [record for row in table.values() for record in row]
    return {"low": fmean(record.low for record in every), "high": fmean(record.high for record in every)}


def _leaderboard_entry(metrics: Metrics, judged: Sequence[AnswerRecord]) -> dict[str, str] | None:
    judges = {record.judge for record in judged}  # a judge whose effort is unknown makes figures incomparable
    is_comparable = metrics["task_selection"]["source"] == "task_list" and metrics["num_runs"] == LEADERBOARD_RUNS
    if not is_comparable or len(judges) != 1 or None in judges:
        return None
    time, words = metrics["time_minutes"], metrics["answer_length_words"]
    return {
        "partial_completion": f"{metrics['partial_completion']['mean']:.2f}",
        "success_rate": f"{metrics['success_rate']['mean']:.2f}",
        "pass3": f"{metrics['pass_at_k']['value']:.2f}",
        "time": UNKNOWN if time is None else f"{time['mean']:.2f}",
        "answer_length": UNKNOWN if words is None else f"{words['mean']:.0f}",
    }


def _passed(row: Iterable[AnswerRecord]) -> bool:
    return any(is_success(record.score) for record in row)


def _place(record: AnswerRecord) -> dict[str, Any]:
    return {"task_id": record.task_id, "run": record.run}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _spread_text(spread: Mapping[str, Any] | None, form: str) -> str:
    if spread is None:
        return UNKNOWN
    runs = ", ".join(UNKNOWN if mean is None else format(mean, form) for mean in spread["per_run"])
    return f"{spread['mean']:{form}} ± {spread['std']:{form}}  (runs: {runs})"


def _time_text(time: Mapping[str, Any] | None) -> str:
    if time is None:
        return UNKNOWN
    return f"{_spread_text(time, '.2f')}, reported by {time['answers_with_time']} of {time['answers']} answers"


def _places_text(places: Sequence[Mapping[str, Any]], shown: int = 5) -> str:
    names = [f"{place['task_id']} run {place['run']}" for place in places[:shown]]
    more = [f"and {len(places) - shown} more"] if len(places) > shown else []
    return f"{len(places)}: {', '.join([*names, *more])}" if places else "0"
