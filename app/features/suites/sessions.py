"""Step sessions: a client answers the questions of steps one after another and gets feedback at once.

The state of a session is JSON in the database, so it survives a restart of the service, and any process can continue
it. Sessions are independent of each other. Functions without ``async`` block; call them in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any, Final

from app.features.suites.records import Record, StepStatus
from app.features.suites.run_options import GivenFeedback, History, SessionIn
from app.features.suites.session_data import SessionData, SessionTask
from judges.suites.errors import DataMissing
from judges.suites.mind2web.errors import PageUnusable
from judges.suites.questions import Finished, Question, replay
from judges.suites.step_metrics import Rates, StepScore, SuiteScore, bounds

TRAIN: Final = "train"
TEST: Final = "test"
_NO_OPTION: Final = "None of the above"
MAX_ANSWER_CHARS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """Task in the order of a session. ``phase`` is ``train`` or ``test``."""

    phase: str
    task: SessionTask

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> PlannedTask:
        return cls(phase=value["phase"], task=SessionTask(**value["task"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Position of a session.

    ``task`` is the index of the current task, ``step`` that of the step in it, ``number`` counts finished steps.
    ``replies`` answer the current step so far. ``actions`` are the client's own actions in the current task.
    ``failed`` and ``not_judged`` tell whether one of its steps failed or was not judged. ``last`` is the last answer
    with its feedback, for repeated requests.
    """

    tasks_total: int
    task: int = 0
    step: int = 0
    number: int = 0
    replies: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    failed: bool = False
    not_judged: bool = False
    last: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> SessionState:
        tuples = {name: tuple(value[name]) for name in ("replies", "actions")}
        return cls(**{**value, **tuples})

    @property
    def done(self) -> bool:
        return self.task >= self.tasks_total

    @property
    def question_id(self) -> str:
        return f"{self.number}.{len(self.replies)}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_tasks(
    options: SessionIn, tasks: Sequence[SessionTask], training: Sequence[SessionTask] | None
) -> list[PlannedTask]:
    """Return the tasks of a session in order: training tasks, then test tasks.

    ``training`` are the tasks of the training split, None without one: then the first tasks of the split are used.

    Raises:
        DataMissing: no task is left.
    """

    def ordered(given: Sequence[SessionTask], name: str) -> list[SessionTask]:
        drawn = list(given)
        if options.shuffle_tasks:
            Random(f"{options.seed}:{name}").shuffle(drawn)  # noqa: S311 - not security-relevant
        return drawn

    test = ordered(tasks, TEST)
    if training is None:
        count = options.train_tasks or 0
        train, test = test[:count], test[count:]
    else:
        train = ordered(training, TRAIN)[: options.train_tasks]
    planned = [PlannedTask(phase=TRAIN, task=task) for task in train]
    planned += [PlannedTask(phase=TEST, task=task) for task in test[: options.max_tasks]]
    if not planned:
        raise DataMissing("the data contain no task for this session")
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Result of opening a session or answering a question.

    ``records`` are those of finished steps by number, including steps without a question. ``feedback`` is None until
    the current step ends.
    """

    state: SessionState
    question: Mapping[str, Any] | None
    records: Mapping[int, Record] = field(default_factory=dict)
    feedback: Mapping[str, Any] | None = None


class Session:
    """Session with its data by phase."""

    def __init__(
        self, options: SessionIn, planned: Sequence[PlannedTask], data: Mapping[str, SessionData[Any]]
    ) -> None:
        self._options = options
        self._planned = planned
        self._data = data
        self._own_history = getattr(options, "history", History.GOLD) is History.OWN
        self._loaded: tuple[int, Sequence[Any]] | None = None

    def current(self, state: SessionState) -> Turn:
        """Return the current question. Steps without a question are recorded on the way.

        Raises:
            SuiteError: the data have changed or are damaged.
        """
        records: dict[int, Record] = {}
        while not state.done:
            data, step = self._step(state)
            try:
                fixed = data.score(step)
                if fixed is None:
                    asked = replay(data.questions(step), state.replies)
                    if isinstance(asked, Question):
                        return Turn(state=state, question=self._question(state, data, step, asked), records=records)
                    fixed = data.record(step, asked.outcome)
            except PageUnusable as error:
                fixed = data.unusable(step, error)
            records[state.number] = self._in_phase(state, fixed)
            state = self._after(state, fixed)
        return Turn(state=state, question=None, records=records)

    def answer(self, state: SessionState, text: str) -> Turn:
        """Answer the current question of a session that is not done."""
        data, step = self._step(state)
        answered = replace(state, replies=(*state.replies, text))
        asked = replay(data.questions(step), answered.replies)
        last: dict[str, Any] = {"question": state.question_id, "text": text, "feedback": None}
        if not isinstance(asked, Finished):
            return self.current(replace(answered, last=last))
        record = data.record(step, asked.outcome)
        turn = self.current(self._after(answered, record))
        rest = self._planned[state.task].task.steps - state.step
        passed_over = [turn.records[number] for number in sorted(turn.records) if number < state.number + rest]
        last["feedback"] = feedback = self._feedback(state, turn.state, record, passed_over, data, step)
        return Turn(
            state=replace(turn.state, last=last),
            question=turn.question,
            records={state.number: self._in_phase(state, record), **turn.records},
            feedback=feedback,
        )

    def _step(self, state: SessionState) -> tuple[SessionData[Any], Any]:
        planned = self._planned[state.task]
        data = self._data[planned.phase]
        if self._loaded is None or self._loaded[0] != state.task:
            self._loaded = (state.task, data.steps(planned.task))
        step = self._loaded[1][state.step]
        return data, data.with_history(step, state.actions) if self._own_history else step

    def _after(self, state: SessionState, record: Record) -> SessionState:
        failed = state.failed or record["step_acc"] == 0
        not_judged = state.not_judged or record["status"] == StepStatus.NOT_JUDGED
        actions = (*state.actions, described_action(record))
        same_task = state.step + 1 < self._planned[state.task].task.steps
        return replace(
            state,
            task=state.task + (not same_task),
            step=state.step + 1 if same_task else 0,
            number=state.number + 1,
            replies=(),
            actions=actions if same_task else (),
            failed=failed and same_task,
            not_judged=not_judged and same_task,
        )

    def _in_phase(self, state: SessionState, record: Record) -> Record:
        return {**record, "position": state.number, "phase": self._planned[state.task].phase}

    def _question(self, state: SessionState, data: SessionData[Any], step: Any, asked: Question) -> dict[str, Any]:
        planned, facts = self._planned[state.task], data.facts(step)
        prompt, images = _split_images(asked.messages)
        question = {
            "id": state.question_id,
            "phase": planned.phase,
            "sample_id": facts.id,
            "task_id": planned.task.task_id,
            "task": facts.task,
            "website": facts.website,
            "step": facts.number,
            "round": len(state.replies),
            "prompt": prompt,
            "images": images,
            "options": [{"letter": letter, "text": text} for letter, text, _ in asked.options],
            "none_option": asked.none,
        }
        return _encodable(question)

    def _feedback(
        self,
        state: SessionState,
        after: SessionState,
        record: Record,
        passed_over: Sequence[Record],
        data: SessionData[Any],
        step: Any,
    ) -> dict[str, Any]:
        """Return the feedback to the answer that ended a step.

        ``passed_over`` are the records of the next steps of the task, which have no question.
        """
        phase = self._planned[state.task].phase
        task_done = after.task != state.task
        known = {"sample_id": record["id"], "phase": phase, "task_done": task_done}
        if self._options.feedback is GivenFeedback.TRAIN and phase != TRAIN:
            hidden = dict.fromkeys(("element", "operation", "f1", "step_success", "task_success", "gold"))
            return _encodable(known | hidden)
        gold = data.gold(step)
        last = replay(data.questions(step), state.replies)
        options = last.options if isinstance(last, Question) else ()
        right = [{"letter": letter, "text": text} for letter, text, id in options if data.is_correct(step, id)]
        success = bool(record["step_acc"])
        failed = state.failed or any(each["step_acc"] == 0 for each in passed_over)
        not_judged = state.not_judged or any(each["status"] == StepStatus.NOT_JUDGED for each in passed_over)
        task_success = success and not failed
        is_open = not task_done or (task_success and not_judged)
        scores = {
            "element": record["element_acc"],
            "operation": int(predicted_op(record) == gold["op"]),
            "f1": record["op_f1"] if "op_f1" in record else record["action_f1"],
            "step_success": success,
            "task_success": None if is_open else task_success,
            "gold": {**gold, "options": right},
        }
        return _encodable(known | scores)


def predicted_op(record: Record) -> str:
    """Return the operation of an answer: CLICK, TYPE, SELECT or another word; empty without one."""
    if "action" in record and isinstance(record["action"], str):
        return record["action"]
    prediction = record.get("prediction") or ["", ""]
    return str(prediction[1]).partition(" ")[0]


def described_action(record: Record) -> str:
    """Return the action of an answer as a line of a history: the text of the option, and the operation."""
    prediction = record.get("prediction") or ["", ""]
    return f"{_option_texts(record).get(prediction[0], _NO_OPTION)} -> {str(prediction[1]).strip() or 'NONE'}"


def predicted_action(record: Record) -> dict[str, Any] | None:
    """Return ``elements`` (none or one), ``op`` and ``value`` of an answer; None if no question was asked."""
    trace = record["trace"]
    if "rounds" not in trace:  # Multimodal-Mind2Web~
        picked, op, value = trace.get("picked"), record.get("action"), record.get("value")
        return {"elements": [picked] if picked else [], "op": op or "", "value": value or ""}
    if not trace["rounds"] or record["prediction"] is None:
        return None
    id, op_string = record["prediction"]
    op, _, value = str(op_string).partition(" ")
    texts = _option_texts(record)
    return {"elements": [texts[id]] if id in texts else [], "op": op, "value": value}


def gold_action(record: Record) -> dict[str, Any]:
    """Return ``elements``, ``op`` and ``value`` of the correct action. Elements that were no option are ids."""
    gold, texts = record["trace"]["gold"], _option_texts(record)
    return {"elements": [texts.get(id, id) for id in gold["elements"]], "op": gold["op"], "value": gold["value"]}


def _option_texts(record: Record) -> dict[str, str]:
    rounds = (record.get("trace") or {}).get("rounds") or ()
    return {id: text for one in rounds for id, text in one["options"]}


def _split_images(messages: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return messages with their text only, and their images with the index of the message."""
    prompt: list[dict[str, str]] = []
    images: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        content = message["content"]
        parts: Sequence[Mapping[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        texts = [str(part["text"]) for part in parts if part["type"] == "text"]
        prompt.append({"role": str(message["role"]), "content": "\n".join(texts)})
        images += [
            {"message": index, "url": str(part["image_url"]["url"])} for part in parts if part["type"] == "image_url"
        ]
    return prompt, images


def _encodable(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object without lone surrogates, which data can contain and responses cannot."""
    cleaned: dict[str, Any] = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return cleaned


def session_figures(records: Sequence[Record]) -> dict[str, Any]:
    """Return the figures of each phase over finished steps. A mean is None if a step was not judged."""
    return {phase: _figures([record for record in records if record["phase"] == phase]) for phase in (TRAIN, TEST)}


def _figures(records: Sequence[Record]) -> dict[str, Any]:
    counted = [record for record in records if record["status"] != StepStatus.SKIPPED]
    bounded = bounds([_score(record) for record in counted])
    certain = bounded.certain if counted else None
    return {
        "steps": len(records),
        "tasks": len({record["task_id"] for record in records}),
        "skipped": len(records) - len(counted),
        "not_judged": bounded.not_judged,
        **{mean: _rates(certain, mean) for mean in ("micro", "macro")},
        "task_success": None if certain is None else certain.task_success,
    }


def _rates(score: SuiteScore | None, mean: str) -> dict[str, float] | None:
    if score is None:
        return None
    rates: Rates = getattr(score, mean)
    return {"element": rates.element, "operation": rates.operation, "step": rates.step}


def _score(record: Record) -> StepScore:
    judged = record["status"] == StepStatus.SCORED
    return StepScore(
        task_id=record["task_id"],
        website=record["website"],
        domain=record["domain"],
        element=float(record["element_acc"] or 0.0),
        operation=float(record["action_f1"] or 0.0),
        success=bool(record["step_acc"]),
        judged=judged,
    )
