"""Data of sessions: tasks of both suites in strict order, their questions, and the records of answered steps.

All functions and methods block; call them in a thread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from app.features.suites.data_folders import DataFolders
from app.features.suites.mind2web_suite import scores_table
from app.features.suites.mindact import MindActPlan, PlayOptions, PreparedStep, prepare_step
from app.features.suites.mindact_run import MindActOptions
from app.features.suites.multimodal import read_input, scored_record
from app.features.suites.records import Record
from app.features.suites.run_options import Mind2WebSessionIn, MultimodalSessionIn, SessionIn
from app.settings import Settings
from judges.suites.errors import DataMissing
from judges.suites.mind2web.data import TaskPlace, find_split, index_tasks, read_task
from judges.suites.mind2web.errors import PageUnusable
from judges.suites.mind2web.step_player import PlayedStep
from judges.suites.multimodal.protocol import Dialogue, dialogue_questions
from judges.suites.multimodal.readings import Reading
from judges.suites.multimodal.row_files import read_row
from judges.suites.multimodal.scoring import is_one_of
from judges.suites.multimodal.seeact_parse import parse_seeact
from judges.suites.multimodal.tilde_rows import TildeRow, read_tilde_row
from judges.suites.questions import Questions
from rubrics.verdict import Usage

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTask:
    """Task of a session. ``place`` is JSON that locates it in the data of its split."""

    task_id: str
    steps: int
    place: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What a question says about its step besides prompt and options."""

    id: str
    task: str
    website: str
    number: int


class SessionData(Protocol[S]):
    """Data of one split for sessions.

    Raises:
        SuiteError: the data are missing or damaged, or have changed since the session started.
    """

    def tasks(self) -> list[SessionTask]:
        """Validate all steps and return the tasks in data order."""
        ...

    def steps(self, task: SessionTask) -> Sequence[S]: ...

    def with_history(self, step: S, history: Sequence[str]) -> S:
        """Return the step with other previous actions."""
        ...

    def facts(self, step: S) -> StepFacts: ...

    def score(self, step: S) -> Record | None:
        """Return the record of a step without a question, or None."""
        ...

    def questions(self, step: S) -> Questions[Any]: ...

    def record(self, step: S, outcome: Any) -> Record: ...

    def unusable(self, step: S, error: PageUnusable) -> Record: ...

    def gold(self, step: S) -> dict[str, Any]:
        """Return ``op``, ``value`` and all correct ``elements``."""
        ...

    def is_correct(self, step: S, id: str) -> bool: ...


class Mind2WebData:
    """Steps of Mind2Web."""

    def __init__(self, request: Mind2WebSessionIn, split: str | None, folders: DataFolders, settings: Settings) -> None:
        paths = {name: folders.resolve_allowed(path) for name, path in request.paths().items()}
        name = split or paths["data"].stem
        self._options = MindActOptions(
            data=paths["data"],
            split=name,
            scores=scores_table(paths.get("scores"), settings),
            template=paths.get("prompt_template"),
            play_options=PlayOptions.of_request(request),
        )
        self._split = find_split(paths["data"], name)
        self._ranks = self._options.open_ranks()
        self._plan = MindActPlan(
            self._split,
            0,
            play_options=self._options.play_options,
            ranks=self._ranks,
            template=self._options.open_template(),
        )

    def tasks(self) -> list[SessionTask]:
        return [
            SessionTask(task_id=place.task_id, steps=place.steps, place=dataclasses.asdict(place))
            for place in index_tasks(self._split)
        ]

    def steps(self, task: SessionTask) -> Sequence[PreparedStep]:
        values = dict(task.place)
        item, rows = values.pop("item"), values.pop("rows")
        place = TaskPlace(**values, item=None if item is None else tuple(item), rows=tuple(map(tuple, rows)))
        steps = read_task(self._split, place)
        return [prepare_step(step, self._options.play_options, self._ranks) for step in steps]

    def with_history(self, step: PreparedStep, history: Sequence[str]) -> PreparedStep:
        return replace(step, step=replace(step.step, history=tuple(history)))

    def facts(self, step: PreparedStep) -> StepFacts:
        own = step.step
        return StepFacts(id=own.sample_id, task=own.task, website=own.website, number=own.number)

    def score(self, step: PreparedStep) -> Record | None:
        return self._plan.score(step)

    def questions(self, step: PreparedStep) -> Questions[PlayedStep]:
        return self._plan.questions(step)

    def record(self, step: PreparedStep, outcome: PlayedStep) -> Record:
        return self._plan.record(step, outcome, Usage())

    def unusable(self, step: PreparedStep, error: PageUnusable) -> Record:
        return self._plan.unusable(step, error)

    def gold(self, step: PreparedStep) -> dict[str, Any]:
        return {"op": step.step.op, "value": step.step.value, "elements": list(step.positives)}

    def is_correct(self, step: PreparedStep, id: str) -> bool:
        return id in step.positives


class MultimodalData:
    """Rows of Multimodal-Mind2Web~. Their prompts contain the gold history."""

    def __init__(self, request: MultimodalSessionIn, split: str | None, folders: DataFolders) -> None:
        self._data = folders.resolve_allowed(request.data)
        self._split = split
        self._reading = Reading.of(request.tokens)

    def tasks(self) -> list[SessionTask]:
        by_task: dict[str, list[TildeRow]] = {}
        for row in read_input(self._data, split=self._split, prompts=True).rows:
            by_task.setdefault(row.task_id, []).append(row)
        return [
            SessionTask(
                task_id=task_id,
                steps=len(rows),
                place={"rows": [row.position for row in sorted(rows, key=lambda row: row.step)]},
            )
            for task_id, rows in by_task.items()
        ]

    def steps(self, task: SessionTask) -> Sequence[TildeRow]:
        rows = [read_row(self._data, position) for position in task.place["rows"]]
        steps = [read_tilde_row(row.values, place=row.place, position=row.position) for row in rows if row is not None]
        if len(steps) != task.steps or any(step.task_id != task.task_id for step in steps):
            raise DataMissing(f"{self._data} has changed: task {task.task_id} is not at its place")
        return steps

    def with_history(self, step: TildeRow, history: Sequence[str]) -> TildeRow:
        return step

    def facts(self, step: TildeRow) -> StepFacts:
        return StepFacts(id=step.id, task=step.task, website=step.website, number=step.step)

    def score(self, step: TildeRow) -> Record | None:
        return None

    def questions(self, step: TildeRow) -> Questions[Dialogue]:
        return dialogue_questions(step)

    def record(self, step: TildeRow, outcome: Dialogue) -> Record:
        return scored_record(step, parse_seeact(outcome.answer), reading=self._reading, dialogue=outcome)

    def unusable(self, step: TildeRow, error: PageUnusable) -> Record:
        raise error  # no question of this suite raises it

    def gold(self, step: TildeRow) -> dict[str, Any]:
        return {"op": step.op, "value": step.value, "elements": list(step.targets)}

    def is_correct(self, step: TildeRow, id: str) -> bool:
        return is_one_of(id, step.targets)


def open_data(options: SessionIn, split: str | None, folders: DataFolders, settings: Settings) -> Any:
    if isinstance(options, Mind2WebSessionIn):
        return Mind2WebData(options, split, folders, settings)
    assert isinstance(options, MultimodalSessionIn)  # noqa: S101 - the only other kind
    return MultimodalData(options, split, folders)
