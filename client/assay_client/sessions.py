"""Step sessions: an iterator over the questions of a benchmark, with feedback after each step.

    session = client.start_session("mind2web", {"data": "data", "split": "test_task", "protocol": "guide"})
    for question in session:
        feedback = session.answer(agent(question.messages))
        if feedback is not None:
            agent.learn(question, feedback)

The server keeps the state: ``client.session(suite, id)`` resumes, also after a restart of the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from assay_client import wire
from assay_client.errors import ClientError

Call: TypeAlias = Callable[..., Any]
"""Sends a request and returns the JSON of its response: method, path, and ``json``."""
AsyncCall: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question of a step. ``options`` are (letters, text) pairs, ``images`` are (index of a message, data URI) pairs.

    ``phase`` is ``train`` or ``test``. ``step`` and ``round`` count from 0 in the task and in the step.
    """

    id: str
    phase: str
    sample_id: str
    task_id: str
    task: str
    website: str
    step: int
    round: int
    prompt: Sequence[Mapping[str, str]]
    images: Sequence[tuple[int, str]]
    options: Sequence[tuple[str, str]]
    none_option: str | None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Question:
        values = {name: data[name] for name in cls.__slots__}
        values["options"] = [(option["letter"], option["text"]) for option in data["options"]]
        values["images"] = [(int(image["message"]), image["url"]) for image in data["images"]]
        return cls(**values)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Chat messages with their images, in OpenAI's format."""
        messages: list[dict[str, Any]] = []
        for index, message in enumerate(self.prompt):
            parts = [{"type": "image_url", "image_url": {"url": url}} for at, url in self.images if at == index]
            text = message["content"]
            content: Any = [{"type": "text", "text": text}, *parts] if parts else text
            messages.append({"role": message["role"], "content": content})
        return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Feedback to the answer that ended a step.

    ``element`` and ``operation`` are 0 or 1, ``f1`` is the F1 of the operation. ``task_success`` is None before the
    last step of the task, and if a step was not judged and none failed. ``gold`` has ``op``, ``value``, ``elements``,
    and the correct ``options`` of the last question. The scores and ``gold`` are None if the session gives no feedback
    in its test phase.
    """

    sample_id: str
    phase: str
    element: int | None
    operation: int | None
    f1: float | None
    step_success: bool | None
    task_done: bool
    task_success: bool | None
    gold: Mapping[str, Any] | None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Feedback:
        return cls(**{name: data[name] for name in cls.__slots__})


class _SessionState:
    """State of a session that both clients share."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.suite = str(document["suite"])
        self.id = str(document["id"])
        self.raw = document
        self._path = f"/v1/suites/{self.suite}/sessions/{self.id}"
        self._question = self._parse(document)
        self._given: Question | None = None

    @property
    def done(self) -> bool:
        return self._question is None

    @staticmethod
    def _parse(document: Mapping[str, Any]) -> Question | None:
        return None if document["question"] is None else wire.parse_as(Question.from_json, document["question"])

    def _next(self) -> Question | None:
        if self._question is not None and self._question is self._given:
            raise ClientError(f"question {self._given.id} has no answer yet: call answer() before the next question")
        self._given = self._question
        return self._given

    def _body(self, text: str) -> dict[str, str]:
        if self._question is None:
            raise ClientError(f"session {self.id} has no more questions")
        return {"question": self._question.id, "text": text}

    def _accept(self, document: Mapping[str, Any]) -> Feedback | None:
        self._question = self._parse(document)
        return None if document["feedback"] is None else wire.parse_as(Feedback.from_json, document["feedback"])


class SuiteSession(_SessionState):
    """Iterator over the questions of a session. Answer each question before the next one.

    ``answer`` can be repeated after ``ServerUnreachable``: the server accepts each answer once.
    """

    def __init__(self, call: Call, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._call = call

    def __iter__(self) -> SuiteSession:
        return self

    def __next__(self) -> Question:
        question = self._next()
        if question is None:
            raise StopIteration
        return question

    def answer(self, text: str) -> Feedback | None:
        """Answer the current question. Returns the feedback, or None if the step has another question."""
        return self._accept(wire.parse_as(dict, self._call("POST", f"{self._path}/answers", json=self._body(text))))

    def figures(self) -> dict[str, Any]:
        """Return the figures of the finished steps by phase."""
        return wire.parse_as(lambda body: dict(body["figures"]), self._call("GET", self._path))


class AsyncSuiteSession(_SessionState):
    """``SuiteSession`` for asyncio: iterate with ``async for``."""

    def __init__(self, call: AsyncCall, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._call = call

    def __aiter__(self) -> AsyncSuiteSession:
        return self

    async def __anext__(self) -> Question:
        question = self._next()
        if question is None:
            raise StopAsyncIteration
        return question

    async def answer(self, text: str) -> Feedback | None:
        """Answer the current question. Returns the feedback, or None if the step has another question."""
        reply = await self._call("POST", f"{self._path}/answers", json=self._body(text))
        return self._accept(wire.parse_as(dict, reply))

    async def figures(self) -> dict[str, Any]:
        """Return the figures of the finished steps by phase."""
        return wire.parse_as(lambda body: dict(body["figures"]), await self._call("GET", self._path))
