"""API of step sessions: start one, answer its questions one after another, and get feedback after each step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.examples import EXAMPLE_ID
from app.api.models import ListOut
from app.api.paging import IdPath, PageRequest, PositionsPageDep, pages_by_id
from app.api.problems import Problem, not_found, unavailable
from app.api.response_headers import sends
from app.api.strict_json import StrictJsonRoute
from app.features.suites import storage
from app.features.suites.api import PositionPath, StepOut, StepSummaryOut, check_paths
from app.features.suites.data_folders import DataFolders
from app.features.suites.errors import PathNotAllowed
from app.features.suites.run_options import Mind2WebSessionIn, MultimodalSessionIn, SessionIn
from app.features.suites.service_suite import SuiteName
from app.features.suites.session_data import SessionData, open_data
from app.features.suites.sessions import (
    MAX_ANSWER_CHARS,
    TEST,
    TRAIN,
    PlannedTask,
    Session,
    SessionState,
    Turn,
    gold_action,
    plan_tasks,
    predicted_action,
    session_figures,
)
from app.service import Service
from app.settings import Settings
from app.storage.text_cleanup import storable_text
from judges.suites.errors import SuiteError

T = TypeVar("T")
ID_PREFIX = "sess"
DATA_TIMEOUT_S = 600.0
"""Time limit for reading the data of a request."""
_OPTIONS: Mapping[str, type[SessionIn]] = {
    SuiteName.MIND2WEB: Mind2WebSessionIn,
    SuiteName.MM_MIND2WEB: MultimodalSessionIn,
}
_ID = f"{ID_PREFIX}_{EXAMPLE_ID}"
_QUESTION: dict[str, Any] = {
    "id": "3.0",
    "phase": "train",
    "sample_id": "T2_b",
    "task_id": "T2",
    "task": "Book a ferry for two",
    "website": "ferry",
    "step": 1,
    "round": 0,
    "prompt": [{"role": "user", "content": "Task: Book a ferry for two ..."}],
    "images": [],
    "options": [{"letter": "B", "text": "<button backend_node_id=7> Search </button>"}],
    "none_option": "A",
}
_FEEDBACK: dict[str, Any] = {
    "sample_id": "T2_a",
    "phase": "train",
    "element": 1,
    "operation": 1,
    "f1": 1.0,
    "step_success": True,
    "task_done": True,
    "task_success": True,
    "gold": {
        "op": "CLICK",
        "value": "",
        "elements": ["7"],
        "options": [{"letter": "B", "text": "<button backend_node_id=7> Search </button>"}],
    },
}
_FIGURES: dict[str, Any] = {
    "steps": 3,
    "tasks": 2,
    "skipped": 0,
    "not_judged": 0,
    "micro": {"element": 0.67, "operation": 1.0, "step": 0.67},
    "macro": {"element": 0.75, "operation": 1.0, "step": 0.75},
    "task_success": 0.5,
}


_STEP: dict[str, Any] = {
    "position": 3,
    "id": "T2_a",
    "task_id": "T2",
    "website": "ferry",
    "domain": "Travel",
    "status": "scored",
    "reason": None,
    "element_acc": 1.0,
    "action_f1": 1.0,
    "step_acc": 1.0,
    "phase": "train",
    "prediction": {"elements": ["<button backend_node_id=7> Search </button>"], "op": "CLICK", "value": ""},
    "gold": {"elements": ["<button backend_node_id=7> Search </button>"], "op": "CLICK", "value": ""},
}


class OptionOut(BaseModel):
    """Option of a question."""

    letter: str
    text: str


class QuestionOut(BaseModel):
    """Question that must be answered next."""

    model_config = ConfigDict(json_schema_extra={"example": _QUESTION})

    id: str = Field(description="Send it with the answer")
    phase: str = Field(description="train or test")
    sample_id: str
    task_id: str
    task: str = Field(description="Task in words")
    website: str
    step: int = Field(description="Index of the step in its task")
    round: int = Field(description="Index of the question in its step")
    prompt: list[dict[str, str]] = Field(description="Chat messages: role and content")
    images: list[dict[str, Any]] = Field(
        description="Images as data URIs in url; message is the index of their message"
    )
    options: list[OptionOut] = Field(description="Empty if the question has no options")
    none_option: str | None = Field(description="Letter of none of the above")


class FeedbackOut(BaseModel):
    """Feedback to the answer that ended a step. Scores and gold are null in the test phase with ``feedback: train``."""

    model_config = ConfigDict(json_schema_extra={"example": _FEEDBACK})

    sample_id: str
    phase: str
    element: int | None = Field(description="1: the chosen element is correct")
    operation: int | None = Field(description="1: the operation is correct, ignoring its value")
    f1: float | None = Field(description="Operation F1")
    step_success: bool | None
    task_done: bool = Field(description="The step was the last one of its task with a question")
    task_success: bool | None = Field(
        description="Every step of the task succeeded; null before its last step, and if a step was not judged and no "
        "other one failed"
    )
    gold: dict[str, Any] | None = Field(
        description="Correct op, value and elements, and the options of the last question that are correct"
    )


class SessionOut(BaseModel):
    """Session with its progress. ``figures`` are those of the finished steps of each phase."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": _ID,
                "suite": "mind2web",
                "status": "active",
                "url": f"/v1/suites/mind2web/sessions/{_ID}",
                "options": {"data": "mind2web/data", "split": "test_task", "protocol": "guide"},
                "created_at": "2026-03-01T09:30:00Z",
                "updated_at": "2026-03-01T09:31:00Z",
                "steps_total": 120,
                "steps_done": 3,
                "tasks_total": 20,
                "tasks_done": 1,
                "figures": {"train": _FIGURES, "test": None},
                "question": _QUESTION,
            }
        }
    )

    id: str
    suite: str
    status: str = Field(description="active or done")
    url: str
    options: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    steps_total: int
    steps_done: int
    tasks_total: int
    tasks_done: int
    figures: dict[str, dict[str, Any] | None] | None = Field(description="Null in lists")
    question: QuestionOut | None = Field(description="Null if the session is done, in lists, and if not requested")


class StepAnswerIn(BaseModel):
    """Answer to a question."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"question": "3.0", "text": "Answer: B.\nAction: CLICK"}},
    )

    question: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$", description="Id of the question")]
    text: Annotated[str, Field(max_length=MAX_ANSWER_CHARS, description="Reply of the model or agent, unchanged")]


class AnsweredOut(BaseModel):
    """Feedback, and the next question."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"feedback": _FEEDBACK, "done": False, "question": _QUESTION}}
    )

    feedback: FeedbackOut | None = Field(description="Null if the step has another question")
    done: bool = Field(description="The session has no more questions")
    question: QuestionOut | None


class StepActionOut(BaseModel):
    """Action of a step. ``elements`` are the texts of options, or ids of elements that were not an option."""

    elements: list[str]
    op: str
    value: str


class SessionStepOut(StepSummaryOut):
    """Finished step of a session. ``position`` is the number of the step in the session."""

    model_config = ConfigDict(json_schema_extra={"example": _STEP})

    phase: str = Field(description="train or test")
    prediction: StepActionOut | None = Field(description="Chosen action; null if no question was asked")
    gold: StepActionOut = Field(description="Correct action")

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> SessionStepOut:
        known = {name: record.get(name) for name in (*StepSummaryOut.model_fields, "phase")}
        return cls.model_validate({**known, "prediction": predicted_action(record), "gold": gold_action(record)})


router = APIRouter(prefix="/v1/suites", tags=["suites"], route_class=StrictJsonRoute)


@router.post("/mind2web/sessions", status_code=201, responses=sends(201, "Location"))
async def create_mind2web_session(
    body: Mind2WebSessionIn, response: Response, service: ServiceDep, caller: SubmitterDep
) -> SessionOut:
    """Start a session over Mind2Web and return its first question."""
    return await _start(SuiteName.MIND2WEB, body, response, service, caller)


@router.post("/mm-mind2web/sessions", status_code=201, responses=sends(201, "Location"))
async def create_mm_mind2web_session(
    body: MultimodalSessionIn, response: Response, service: ServiceDep, caller: SubmitterDep
) -> SessionOut:
    """Start a session over Multimodal-Mind2Web~ and return its first question."""
    return await _start(SuiteName.MM_MIND2WEB, body, response, service, caller)


@router.get("/{suite}/sessions")
async def list_suite_sessions(
    suite: SuiteName, service: ServiceDep, caller: ReaderDep, paging: Annotated[PageRequest, pages_by_id(ID_PREFIX)]
) -> ListOut[SessionOut]:
    """List the sessions of a suite, newest first."""
    async with service.database.begin() as connection:
        newest = await storage.list_sessions(
            connection, suite=suite, owner=caller.visible_owner, limit=paging.limit + 1, before=paging.cursor
        )
    page, next_cursor = paging.split(newest, lambda row: row.id)
    return ListOut(items=[_session_out(row) for row in page], next_cursor=next_cursor)


@router.get("/{suite}/sessions/{session_id}")
async def get_suite_session(
    suite: SuiteName,
    session_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    question: Annotated[bool, Query(description="false: without the question, so the data are not read")] = True,
) -> SessionOut:
    """Return a session with its figures and the question that must be answered next. Use it to resume."""
    row = await _find(service, caller, suite, session_id)
    return await (_with_details if question else _with_figures)(service, row)


@router.post("/{suite}/sessions/{session_id}/answers")
async def answer_suite_step(
    suite: SuiteName, session_id: IdPath, body: StepAnswerIn, service: ServiceDep, caller: SubmitterDep
) -> AnsweredOut:
    """Answer the current question. Returns feedback if the step has ended, and the next question.

    The same answer to the previous question returns the same feedback, so a request can be repeated.
    """
    row = await _find(service, caller, suite, session_id)
    state, text = SessionState.of(json.loads(row.state)), storable_text(body.text)
    last = state.last
    if last is not None and (body.question, text) == (last["question"], last["text"]):
        turn = await _reading(service, lambda: _open(row, service.settings).current(state))
        return _answered(turn, last["feedback"])
    if body.question != state.question_id or state.done:
        current = "the session is done" if state.done else f"the current one is {state.question_id}"
        raise Problem(409, "QUESTION_ANSWERED", f"Question {body.question} cannot be answered: {current}")
    turn = await _reading(service, lambda: _open(row, service.settings).answer(state, text))
    async with service.database.begin() as connection:
        stored = await storage.advance_session(
            connection,
            row.id,
            turn=row.turn + 1,
            state=json.dumps(turn.state.as_json()),
            now=service.runtime.clock.now(),
            records=turn.records,
        )
    if not stored:
        raise Problem(409, "QUESTION_ANSWERED", f"Question {body.question} was answered by another request")
    return _answered(turn, turn.feedback)


@router.get("/{suite}/sessions/{session_id}/steps")
async def list_session_steps(
    suite: SuiteName, session_id: IdPath, service: ServiceDep, caller: ReaderDep, paging: PositionsPageDep
) -> ListOut[SessionStepOut]:
    """List the finished steps of a session in their order. ``position`` is the number of the step in the session."""
    row = await _find(service, caller, suite, session_id)
    after = None if paging.cursor is None else int(paging.cursor)
    async with service.database.begin() as connection:
        texts = await storage.session_steps(connection, row.id, limit=paging.limit + 1, after=after)
    steps = await asyncio.to_thread(lambda: [SessionStepOut.of(record) for record in storage.parse_steps(texts)])
    page, next_cursor = paging.split(steps, lambda step: str(step.position))
    return ListOut(items=list(page), next_cursor=next_cursor)


@router.get("/{suite}/sessions/{session_id}/steps/{position}")
async def get_session_step(
    suite: SuiteName, session_id: IdPath, position: PositionPath, service: ServiceDep, caller: ReaderDep
) -> StepOut:
    """Return one finished step of a session: questions, replies, gold answer and verdict."""
    row = await _find(service, caller, suite, session_id)
    async with service.database.begin() as connection:
        texts = await storage.session_steps(connection, row.id, limit=1, after=position - 1)
    found = await asyncio.to_thread(storage.parse_steps, texts)
    if not found or found[0]["position"] != position:
        raise not_found("step, or it is not answered yet")
    return StepOut.of(found[0], page=None)


@router.delete("/{suite}/sessions/{session_id}", status_code=204)
async def delete_suite_session(suite: SuiteName, session_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> None:
    """Delete a session and its steps."""
    row = await _find(service, caller, suite, session_id)
    async with service.database.begin() as connection:
        await storage.delete_session(connection, row.id)


async def _start(
    suite: SuiteName, options: SessionIn, response: Response, service: Service, caller: Caller
) -> SessionOut:
    folders = DataFolders.of(service.settings)
    await asyncio.to_thread(check_paths, options, folders)

    def start() -> tuple[list[PlannedTask], Turn]:
        data = _data(options, folders, service.settings)
        training = None if options.train_split is None else data[TRAIN].tasks()
        planned = plan_tasks(options, data[TEST].tasks(), training)
        return planned, Session(options, planned, data).current(SessionState(tasks_total=len(planned)))

    planned, turn = await _reading(service, start)
    now = service.runtime.clock.now()
    row = storage.SessionRow(
        id=service.runtime.ids.new(ID_PREFIX),
        owner=caller.owner,
        suite=suite.value,
        options=options.model_dump_json(exclude_none=True),
        tasks=json.dumps([_planned_json(one) for one in planned]),
        steps_total=sum(one.task.steps for one in planned),
        state=json.dumps(turn.state.as_json()),
        turn=0,
        created_at=now,
        updated_at=now,
    )
    async with service.database.begin() as connection:
        await storage.create_session(connection, row)
        await storage.store_session_steps(connection, row.id, turn.records)
    response.headers["Location"] = f"/v1/suites/{suite.value}/sessions/{row.id}"
    return await _with_details(service, row)


def _planned_json(planned: PlannedTask) -> dict[str, Any]:
    task = planned.task
    return {"phase": planned.phase, "task": {"task_id": task.task_id, "steps": task.steps, "place": task.place}}


def _data(options: SessionIn, folders: DataFolders, settings: Settings) -> dict[str, SessionData[Any]]:
    test: SessionData[Any] = open_data(options, options.split, folders, settings)
    if options.train_split is None:
        return {TRAIN: test, TEST: test}
    return {TRAIN: open_data(options, options.train_split, folders, settings), TEST: test}


def _open(row: storage.SessionRow, settings: Settings) -> Session:
    options = _OPTIONS[row.suite].model_validate_json(row.options)
    planned = [PlannedTask.of(one) for one in json.loads(row.tasks)]
    return Session(options, planned, _data(options, DataFolders.of(settings), settings))


async def _reading(service: Service, read: Callable[[], T]) -> T:
    """Run a function that reads data, in a thread.

    Raises:
        Problem: the data are missing, damaged or have changed (422), or reading takes too long (503).
    """
    try:
        async with asyncio.timeout(DATA_TIMEOUT_S):
            return await asyncio.to_thread(read)
    except (SuiteError, PathNotAllowed) as error:
        detail = DataFolders.of(service.settings).hide_folders(str(error))
        raise Problem(422, "SUITE_DATA", f"The data cannot be used: {detail}") from error
    except TimeoutError as error:
        raise unavailable(f"Reading the data took more than {DATA_TIMEOUT_S:g} s") from error


async def _find(service: Service, caller: Caller, suite: SuiteName, id: str) -> storage.SessionRow:
    async with service.database.begin() as connection:
        row = await storage.get_session(connection, id, suite=suite.value, owner=caller.visible_owner)
    if row is None:
        raise not_found("session")
    return row


async def _with_details(service: Service, row: storage.SessionRow) -> SessionOut:
    state = SessionState.of(json.loads(row.state))
    turn = await _reading(service, lambda: _open(row, service.settings).current(state))
    out = await _with_figures(service, row)
    out.question = None if turn.question is None else QuestionOut.model_validate(turn.question)
    return out


async def _with_figures(service: Service, row: storage.SessionRow) -> SessionOut:
    async with service.database.begin() as connection:
        texts = await storage.session_record_texts(connection, row.id)
    out = _session_out(row)
    out.figures = await asyncio.to_thread(lambda: session_figures(storage.parse_records(texts)))
    return out


def _session_out(row: storage.SessionRow) -> SessionOut:
    state = SessionState.of(json.loads(row.state))
    return SessionOut(
        id=row.id,
        suite=row.suite,
        status="done" if state.done else "active",
        url=f"/v1/suites/{row.suite}/sessions/{row.id}",
        options=json.loads(row.options),
        created_at=row.created_at,
        updated_at=row.updated_at,
        steps_total=row.steps_total,
        steps_done=state.number,
        tasks_total=state.tasks_total,
        tasks_done=state.task,
        figures=None,
        question=None,
    )


def _answered(turn: Turn, feedback: Mapping[str, Any] | None) -> AnsweredOut:
    return AnsweredOut(
        feedback=None if feedback is None else FeedbackOut.model_validate(feedback),
        done=turn.question is None,
        question=None if turn.question is None else QuestionOut.model_validate(turn.question),
    )
