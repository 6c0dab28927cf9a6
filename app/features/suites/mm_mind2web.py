"""Runs of Multimodal-Mind2Web~: validate all rows before any cost, then read them again one by one to ask a model."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.features.suites.boxes import boxes_of
from app.features.suites.records import TRACE, Record, StepStatus, step_record
from app.features.suites.run_options import MultimodalRunIn, SuiteName
from app.features.suites.suite_run import Resolve, StepView, SuiteModel, SuiteRun, tool_version
from app.settings import Settings
from judges.suites.errors import DataUnreadable, PageUnusable, SuiteError
from judges.suites.mind2web.data import check_layout
from judges.suites.mind2web.page import ID, Page, show_page
from judges.suites.multimodal.dialogue import (
    MAX_TOKENS,
    Dialogue,
    SeeActReply,
    dialogue_questions,
    parse_seeact,
    read_predictions,
)
from judges.suites.multimodal.row_files import Row, data_files, read_row, read_rows
from judges.suites.multimodal.scoring import PUBLISHED, operation_string, report, root_id, score_answer, token_ids
from judges.suites.multimodal.tilde_rows import (
    BOXES_COLUMN,
    PROMPT_COLUMNS,
    SCORED_COLUMNS,
    TildeRow,
    read_tilde_row,
    report_messages,
)
from judges.suites.questions import option_name
from judges.suites.rules import Reading
from rubrics.verdict import Usage

INVALID_ROW = "is_valid_false"
NO_PREDICTION = "no_prediction"
_SOURCE_COLUMN = "annotation_id"
"""Column that identifies rows of Multimodal-Mind2Web. The ~ format does not have it."""
_TILDE_ID = re.compile(r"(\s)bnid=")


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeInput:
    """Content of the data. ``rows`` are the valid rows of the split without prompts; ``digest`` identifies the data."""

    splits: tuple[str, ...]
    rows: tuple[TildeRow, ...]
    row_count: int
    skipped: Mapping[str, int]
    digest: str


def read_input(
    data: Path, *, split: str | None = None, max_examples: int | None = None, prompts: bool = False
) -> TildeInput:
    """Read and validate all rows, so that damage is found before any cost. Blocks.

    Prompts, which contain the screenshots, are only read and validated with ``prompts``. They are not kept.

    Raises:
        SuiteError: there is no matching row, or none is valid.
        DataUnreadable: a row is damaged or repeats a step.
    """
    token_ids("")  # load the vocabulary now and not later on an event loop
    rows: list[TildeRow] = []
    seen: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    digest = hashlib.sha256()
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
        splits.add(row.split)
        if split is None or row.split == split:
            selected_splits.add(row.split)
        elif row.split:
            continue
        if row.id in seen:
            raise DataUnreadable(row.place, f"repeats step {row.id} of {seen[row.id]}")
        seen[row.id] = row.place
        digest.update(repr((row.id, row.candidates, row.targets, row.op, row.value, row.valid)).encode())
        if not row.valid:
            skipped[INVALID_ROW] += 1
        elif max_examples is None or len(rows) < max_examples:
            rows.append(replace(row, first_turns=(), second_turns=()))
    if not seen:
        existing = f"; existing splits: {', '.join(sorted(splits))}" if splits else ""
        raise SuiteError(f"{data} has no row{f' of the split {split}' if split else ''}{existing}")
    if not rows:
        raise SuiteError(f"{data} has no step to score: is_valid is false in all {len(seen)} rows")
    return TildeInput(
        splits=tuple(sorted(selected_splits)),
        rows=tuple(rows),
        row_count=len(seen),
        skipped=dict(skipped),
        digest=digest.hexdigest(),
    )


class MultimodalRun(SuiteRun[TildeRow]):
    """Run that asks a model about every valid row, or scores the answers of a file.

    A step without an answer in the file is not judged.
    """

    name = SuiteName.MM_MIND2WEB
    options_class = MultimodalRunIn
    options: MultimodalRunIn

    def __init__(self, options: MultimodalRunIn, resolve: Resolve, settings: Settings) -> None:
        """Read and validate the data. Blocks.

        Raises:
            SuiteError: the data or the answers cannot be used.
            PathNotAllowed: ``resolve`` refuses a path.
        """
        self._data = resolve(options.data)
        self._reading = Reading.of(options.tokens)
        self.read = read_input(
            self._data, split=options.split, max_examples=options.max_examples, prompts=options.predictions is None
        )
        self._positions = frozenset(row.position for row in self.read.rows)
        self._tasks = len({row.task_id for row in self.read.rows})
        self._answers = None if options.predictions is None else read_predictions(resolve(options.predictions))
        super().__init__(options, settings, total=len(self.read.rows), max_tokens=MAX_TOKENS)

    def steps(self) -> Iterator[TildeRow]:
        if self._answers is not None:
            yield from self.read.rows
            return
        for source in read_rows(self._data, (*SCORED_COLUMNS, *PROMPT_COLUMNS, BOXES_COLUMN)):
            if source.position in self._positions:
                yield read_tilde_row(source.values, place=source.place, position=source.position)

    def step_id(self, step: TildeRow) -> str:
        return step.id

    async def judge(self, step: TildeRow, suite_model: SuiteModel) -> Record:
        if self._answers is not None:
            predicted = self._answers.get(step.id)
            if predicted is None:
                return self.not_judged(step, NO_PREDICTION, "the file contains no answer for this step")
            return self._scored(step, predicted.reply, raw=predicted.raw)
        metadata = {"sample_id": step.id, "task_id": step.task_id, "step": str(step.step)}
        dialogue, usage = await self.ask(dialogue_questions(step), suite_model, metadata)
        # In a thread, because the digest of a screenshot takes milliseconds.
        return await asyncio.to_thread(self._answered, step, dialogue, usage)

    def _answered(self, step: TildeRow, dialogue: Dialogue, usage: Usage) -> Record:
        answer = parse_seeact(dialogue.answer)
        return self._scored(step, answer, raw=dialogue.answer, thought=dialogue.thought, usage=usage)

    def _scored(
        self,
        step: TildeRow,
        answer: SeeActReply,
        *,
        raw: str | None,
        thought: str | None = None,
        usage: Usage | None = None,
    ) -> Record:
        verdict = score_answer(step, answer)
        own = {
            "f1": {str(each): value for each, value in verdict.f1.items()},
            "element": answer.element,
            "action": answer.action,
            "value": answer.value,
        }
        trace = {"thought": thought, "raw_output": raw, "picked": verdict.picked, "operation": verdict.operation}
        f1 = verdict.f1[self._reading]
        return step_record(
            _step_fields(step) | own,
            _trace(step) | trace,
            status=StepStatus.SCORED,
            figures=(int(verdict.element_correct), f1, int(verdict.success(self._reading))),
            usage=usage,
        )

    def not_judged(self, step: TildeRow, reason: str, detail: str, usage: Usage | None = None) -> Record:
        fields, trace = _step_fields(step) | {"f1": None}, _trace(step)
        return step_record(fields, trace, status=StepStatus.NOT_JUDGED, reason=reason, detail=detail, usage=usage)

    def identity(self) -> dict[str, Any]:
        answers = repr(sorted(self._answers.items(), key=lambda item: item[0])) if self._answers is not None else None
        return {
            "suite": self.name.value,
            "model": self.model,
            "split": self.options.split,
            "tokens": str(self.options.tokens),
            "max_examples": self.options.max_examples,
            "data": self.read.digest,
            "predictions": None if answers is None else hashlib.sha256(answers.encode()).hexdigest(),
        }

    def unknown_ids(self, records: Sequence[Record]) -> list[str]:
        """Return ids of answers to steps that are not in the data. Skipped rows are known."""
        unknown = (self._answers or {}).keys() - {row.id for row in self.read.rows}
        if unknown:
            rows = read_rows(self._data, ("task_id", "step"))
            unknown -= {f"{row.values.get('task_id')}:{row.values.get('step')}" for row in rows}
        return sorted(unknown)

    def own_figures(self, records: Sequence[Record]) -> dict[str, Any]:
        options, read = self.options, self.read
        files = [{"name": file.name, "bytes": file.stat().st_size} for file in data_files(self._data)]
        return {
            "answers": None if options.predictions is None else Path(options.predictions).name,
            "splits": list(read.splits),
            "tokens": str(options.tokens),
            "data": {"files": files, "sha256_of_rows": read.digest},
            "tool_version": tool_version(),
            "n_rows": read.row_count,
            "n_valid": read.row_count - sum(read.skipped.values()),
            "n_tasks_with_valid": self._tasks,
            "skipped": dict(read.skipped),
            **report(records, reading=self._reading, seed=options.seed),
            "published": list(PUBLISHED),
        }

    def describe(self) -> Iterator[str]:
        answered_by = f"answers of {self.options.predictions}" if self.model is None else self.model
        skipped = sum(self.read.skipped.values())
        note = f"; {skipped} invalid rows are not counted" if skipped else ""
        yield f"{self.total} steps of {self._tasks} tasks by {answered_by}{note}"
        if len(self.read.splits) > 1:
            yield f"splits are mixed: {', '.join(self.read.splits)}; use --split to select one"

    @classmethod
    def step_view(cls, options: MultimodalRunIn, resolve: Resolve, record: Record) -> StepView:
        source = read_row(data_files(resolve(options.data)), int(record["position"]))
        row = None if source is None else read_tilde_row(source.values, place=source.place, position=source.position)
        if source is None or row is None or row.id != record["id"]:
            raise SuiteError(f"{options.data} has changed since the run: step {record['id']} is not at its position")
        picked = (record.get(TRACE) or {}).get("picked")
        boxes = boxes_of(row.boxes, gold=_root_ids(row.targets), picked=_root_ids((picked,) if picked else ()))
        return StepView(page=_page_text(source, row), screenshot=_screenshot(row), boxes=tuple(boxes))


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


def _page_text(source: Row, row: TildeRow) -> str:
    """Return the page around the candidates in Mind2Web's text representation; empty if the page is unusable."""
    page = source.values.get("cleaned_html")
    if not isinstance(page, str):
        return ""
    try:
        parsed = Page.parse(_TILDE_ID.sub(rf"\1{ID}=", page))
        return show_page(parsed, tuple(id for id in _root_ids(row.candidates) if parsed.contains(id))).context
    except PageUnusable:
        return ""


def _screenshot(row: TildeRow) -> bytes | None:
    pictures = [picture.url for turn in row.first_turns for picture in turn.pictures]
    uri = next((url for url in pictures if url.startswith("data:image/") and ";base64," in url[:100]), None)
    try:
        return None if uri is None else base64.b64decode(uri.partition(",")[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataUnreadable(f"{row.place}, field prompt_0", "its screenshot is not valid base64") from error


def _root_ids(elements: Iterable[str]) -> Iterator[str]:
    return (id for id in map(root_id, elements) if id is not None)
