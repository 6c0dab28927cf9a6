"""Multimodal-Mind2Web~ plan: validate all rows before any cost, then read them again one by one to ask a model."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.features.suites.records import Record, StepStatus
from app.features.suites.reports import not_judged_summary, tool_version, total_usage
from app.features.suites.step_loop import Plan, SuiteModel
from judges.errors import LLMError
from judges.llm.client import LLMRequest, Message
from judges.llm.providers import parse_model
from judges.suites.errors import DataMissing, DataUnreadable
from judges.suites.mind2web.data import check_layout
from judges.suites.multimodal.dialogue import (
    MAX_TOKENS,
    Dialogue,
    RecordedAnswer,
    SeeActReply,
    dialogue_questions,
    parse_seeact,
)
from judges.suites.multimodal.row_files import data_files, read_rows
from judges.suites.multimodal.scoring import PUBLISHED, operation_string, report, score_answer, token_ids
from judges.suites.multimodal.tilde_rows import (
    BOXES_COLUMN,
    PROMPT_COLUMNS,
    SCORED_COLUMNS,
    TildeRow,
    read_tilde_row,
    report_messages,
)
from judges.suites.questions import ask_all, option_name, reply_or_empty, request_params
from judges.suites.rules import Counting, Reading
from rubrics.scoring import Score, bounded_score
from rubrics.verdict import Usage

NAME = "mm-mind2web"
INVALID_ROW = "is_valid_false"
NO_PREDICTION = "no_prediction"
_SOURCE_COLUMN = "annotation_id"
"""Column that identifies rows of Multimodal-Mind2Web. The ~ format does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeInput:
    """Content of the data. ``rows`` are the valid rows of the split without prompts; ``digest`` identifies the data."""

    data: Path
    split: str | None
    splits: tuple[str, ...]
    rows: tuple[TildeRow, ...]
    row_count: int
    skipped: Mapping[str, int]
    digest: str

    @property
    def tasks(self) -> int:
        return len({row.task_id for row in self.rows})


def read_input(
    data: Path, *, split: str | None = None, max_examples: int | None = None, prompts: bool = False
) -> TildeInput:
    """Read and validate all rows, so that damage is found before any cost. Blocks.

    Prompts, which contain the screenshots, are only read and validated with ``prompts``. They are not kept.

    Raises:
        DataMissing: there is no matching row, or none is valid.
        DataUnreadable: a row is damaged or repeats a step.
    """
    token_ids("")  # load the vocabulary now and not later on an event loop
    rows: list[TildeRow] = []
    seen: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    digest = hashlib.sha256()
    count = 0
    splits: set[str] = set()
    selected_splits: set[str] = set()
    columns = (*SCORED_COLUMNS, *(PROMPT_COLUMNS if prompts else ()), BOXES_COLUMN, _SOURCE_COLUMN, "actions")
    for source in read_rows(data, columns):
        if "actions" in source.values:
            check_layout(source.values, source.place)
        if _SOURCE_COLUMN in source.values and "task_id" not in source.values:
            raise DataUnreadable(
                source.place,
                "is a Multimodal-Mind2Web row; build a snapshot of such rows with `assay suites build`",
            )
        row = read_tilde_row(source.values, place=source.place, position=source.position, prompts=prompts)
        if split is None or row.split == split:
            selected_splits.add(row.split)
        splits.add(row.split)
        if split is not None and row.split not in ("", split):
            continue
        if row.id in seen:
            raise DataUnreadable(row.place, f"repeats step {row.id} of {seen[row.id]}")
        seen[row.id] = row.place
        count += 1
        digest.update(repr((row.id, row.candidates, row.targets, row.op, row.value, row.valid)).encode())
        if not row.valid:
            skipped[INVALID_ROW] += 1
        elif max_examples is None or len(rows) < max_examples:
            rows.append(replace(row, first_turns=(), second_turns=()))
    if not count:
        existing = f"; existing splits: {', '.join(sorted(splits))}" if splits else ""
        raise DataMissing(f"{data} has no row{f' of the split {split}' if split else ''}{existing}")
    if not rows:
        raise DataMissing(f"{data} has no step to score: is_valid is false in all {count} rows")
    return TildeInput(
        data=data,
        split=split,
        splits=tuple(sorted(selected_splits)),
        rows=tuple(rows),
        row_count=count,
        skipped=dict(skipped),
        digest=digest.hexdigest(),
    )


class TildePlan:
    """Plan that asks a model about every valid row."""

    def __init__(self, run_input: TildeInput, *, counting: Counting) -> None:
        self._input = run_input
        self._reading = Reading.of(counting)
        self._positions = frozenset(row.position for row in run_input.rows)

    @property
    def total(self) -> int:
        return len(self._input.rows)

    def steps(self) -> Iterator[TildeRow]:
        for source in read_rows(self._input.data, (*SCORED_COLUMNS, *PROMPT_COLUMNS, BOXES_COLUMN)):
            if source.position in self._positions:
                yield read_tilde_row(source.values, place=source.place, position=source.position)

    def step_id(self, step: TildeRow) -> str:
        return step.id

    async def judge(self, step: TildeRow, suite_model: SuiteModel) -> Record:
        dialogue, usage = await ask_all(dialogue_questions(step), partial(self._ask, step, suite_model))
        # In a thread, because the digest of a screenshot takes milliseconds.
        return await asyncio.to_thread(self.record, step, dialogue, usage)

    def record(self, step: TildeRow, dialogue: Dialogue, usage: Usage) -> Record:
        answer = parse_seeact(dialogue.answer)
        return scored_record(step, answer, reading=self._reading, dialogue=dialogue, usage=usage)

    async def _ask(self, step: TildeRow, suite_model: SuiteModel, messages: tuple[Message, ...]) -> tuple[str, Usage]:
        request = LLMRequest(
            model=suite_model.model,
            messages=messages,
            params=request_params(suite_model.model, max_tokens=MAX_TOKENS),
            metadata={"sample_id": step.id, "task_id": step.task_id, "step": str(step.step)},
        )
        return await reply_or_empty(suite_model.client, request)

    def not_judged(self, step: TildeRow, error: LLMError) -> Record:
        reason = str(error.reason or "llm_unavailable")
        return not_judged_record(step, reason=reason, detail=str(error), usage=error.usage)


class PredictionsPlan(TildePlan):
    """Plan that scores answers from a file. A step without an answer is not judged."""

    def __init__(self, run_input: TildeInput, answers: Mapping[str, RecordedAnswer], *, counting: Counting) -> None:
        super().__init__(run_input, counting=counting)
        self._answers = answers

    @property
    def digest(self) -> str:
        """Digest that identifies the answers."""
        return hashlib.sha256(repr(sorted(self._answers.items(), key=lambda item: item[0])).encode()).hexdigest()

    def steps(self) -> Iterator[TildeRow]:
        return iter(self._input.rows)

    async def judge(self, step: TildeRow, suite_model: SuiteModel) -> Record:
        return self.score(step)

    def score(self, step: TildeRow) -> Record:
        predicted = self._answers.get(step.id)
        if predicted is None:
            return not_judged_record(
                step, reason=NO_PREDICTION, detail="the file contains no answer for this step", usage=Usage()
            )
        return scored_record(step, predicted.reply, reading=self._reading, raw=predicted.raw)

    def not_judged(self, step: TildeRow, error: LLMError) -> Record:
        raise error

    def unknown_ids(self) -> list[str]:
        """Return ids of answers to steps that are not in the data. Skipped rows are known. Blocks."""
        known = {row.id for row in self._input.rows}
        if self._answers.keys() - known:
            for source in read_rows(self._input.data, ("task_id", "step")):
                known.add(f"{source.values.get('task_id')}:{source.values.get('step')}")
        return sorted(self._answers.keys() - known)


def scored_record(
    row: TildeRow,
    answer: SeeActReply,
    *,
    reading: Reading,
    dialogue: Dialogue | None = None,
    usage: Usage | None = None,
    raw: str | None = None,
) -> Record:
    """Return the record of an answered step."""
    verdict = score_answer(row, answer)
    return {
        **_step_fields(row),
        "status": StepStatus.SCORED.value,
        "reason": None,
        "detail": "",
        "element_acc": int(verdict.element_correct),
        "action_f1": verdict.f1[reading],
        "step_acc": int(verdict.success(reading)),
        "f1": {str(each): value for each, value in verdict.f1.items()},
        "element": answer.element,
        "action": answer.action,
        "value": answer.value,
        "usage": asdict(usage or Usage()),
        "trace": {
            **_trace(row),
            "thought": None if dialogue is None else dialogue.thought,
            "raw_output": raw if dialogue is None else dialogue.answer,
            "picked": verdict.picked,
            "operation": verdict.operation,
        },
    }


def not_judged_record(row: TildeRow, *, reason: str, detail: str, usage: Usage) -> Record:
    return {
        **_step_fields(row),
        "status": StepStatus.NOT_JUDGED.value,
        "reason": reason,
        "detail": detail,
        "element_acc": None,
        "action_f1": None,
        "step_acc": None,
        "f1": None,
        "usage": asdict(usage),
        "trace": _trace(row),
    }


def _step_fields(row: TildeRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "position": row.position,
        "task_id": row.task_id,
        "step": row.step,
        "split": row.split,
        "website": row.website,
        "domain": row.domain,
    }


def _trace(row: TildeRow) -> dict[str, Any]:
    """Return the question and the gold answer. Candidates have letters; the none option comes last."""
    return {
        "task": row.task,
        "prompt": report_messages((*row.first_turns, *row.second_turns)),
        "options": [[option_name(index), text] for index, text in enumerate(row.candidates)],
        "none_option": option_name(len(row.candidates)),
        "gold": {
            "elements": list(row.targets),
            "op": row.op,
            "value": row.value,
            "operation": operation_string(row.op, row.value),
        },
        "boxes": dict(row.boxes),
    }


def data_files_json(data: Path) -> Sequence[dict[str, Any]]:
    """Return name and size of the data files."""
    return [{"name": file.name, "bytes": file.stat().st_size} for file in data_files(data)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeOptions:
    """Options of a run. Without ``split``, all rows are used. ``seed`` only affects the resampling of the intervals.

    ``model`` is ``provider/model``, or None if the answers in the file ``answers`` are scored.
    """

    data: Path
    split: str | None = None
    counting: Counting = Counting.SET
    seed: int = 0
    max_examples: int | None = None
    model: str | None = None
    answers: Path | None = None

    def plan(self, run_input: TildeInput) -> Plan[Any]:
        """Return the plan that asks the model."""
        return TildePlan(run_input, counting=self.counting)

    def open_input(self) -> TildeInput:
        """Read and validate the data. Blocks.

        Raises:
            DataMissing, DataUnreadable: the data cannot be used.
        """
        return read_input(self.data, split=self.split, max_examples=self.max_examples, prompts=self.answers is None)


def run_identity(options: TildeOptions, run_input: TildeInput) -> dict[str, Any]:
    """Return the values that must be equal for the steps of an earlier run to be reused."""
    return {
        "suite": NAME,
        "model": options.model,
        "split": options.split,
        "tokens": str(options.counting),
        "max_examples": options.max_examples,
        "data": run_input.digest,
    }


def figures(
    options: TildeOptions, run_input: TildeInput, records: Sequence[Record], *, unknown: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the figures of a run with its options and data. Blocks."""
    missing = not_judged_summary(records)
    model_name = None if options.model is None else parse_model(options.model).model
    return {
        "suite": NAME,
        "status": "incomplete" if missing["count"] else "complete",
        "model": options.model,
        "params": None if model_name is None else dict(request_params(model_name, max_tokens=MAX_TOKENS)),
        "answers": None if options.answers is None else options.answers.name,
        "split": options.split,
        "splits": list(run_input.splits),
        "tokens": str(options.counting),
        "seed": options.seed,
        "max_examples": options.max_examples,
        "data": {"files": list(data_files_json(run_input.data)), "sha256_of_rows": run_input.digest},
        "tool_version": tool_version(),
        "n_rows": run_input.row_count,
        "n_valid": run_input.row_count - sum(run_input.skipped.values()),
        "n_steps": len(records),
        "n_tasks_with_valid": run_input.tasks,
        "skipped": dict(run_input.skipped),
        **report(records, reading=Reading.of(options.counting), seed=options.seed),
        "published": list(PUBLISHED),
        "not_judged": missing,
        "unknown_ids": list(unknown),
        "usage": total_usage(records),
    }


def summary_score(metrics: Mapping[str, Any]) -> Score:
    """Return the figure for lists of runs: step success over all steps, with its bounds."""
    low, high = (float(metrics["bounds"][end]["step_success_micro"]) for end in ("low", "high"))
    return bounded_score(low, high)
