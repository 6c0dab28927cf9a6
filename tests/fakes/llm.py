"""Model client scripted by a test, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from judges.grounding.support import Transcription
from judges.llm.circuit import CircuitBreaker
from judges.llm.client import LLMReply, LLMRequest
from judges.prompting.rendering import BinaryEvalResult
from rubrics.verdict import Usage

Rule = Callable[[LLMRequest], "bool | BinaryEvalResult | Exception"]


@pytest.fixture
def patient_circuits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let concurrent requests wait for the first reply however long it takes on a busy machine."""
    defaults: Any = CircuitBreaker.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "probe_wait_s", 240.0)


class RuleLLM:
    """Model client with verdicts by ``rule`` and extractions by the name of their class. An exception that a rule
    returns is raised.

    ``pause`` is awaited before each reply, so that a test can control the order of completion.
    """

    def __init__(
        self,
        rule: Rule = lambda request: True,
        *,
        values: Mapping[str, BaseModel | Exception] | None = None,
        pause: Callable[[LLMRequest], Awaitable[object]] | None = None,
        quotes: Callable[[LLMRequest], list[str]] = lambda request: [],
    ) -> None:
        self._rule = rule
        self._values = dict(values or {})
        self._pause = pause
        self._quotes = quotes
        self.requests: list[LLMRequest] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.cancelled: list[LLMRequest] = []
        self.closed = False

    @property
    def claims(self) -> list[str]:
        """Claims of all requests in order, once per vote."""
        return [request.parts["claim"] for request in self.requests if request.purpose == "verify"]

    async def complete(self, request: LLMRequest) -> LLMReply:
        self.requests.append(request)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            await (asyncio.sleep(0) if self._pause is None else self._pause(request))
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        finally:
            self.in_flight -= 1
        reply = self._reply_for(request)
        if isinstance(reply, Exception):
            raise reply
        usage = Usage(calls=1, input_tokens=100, output_tokens=10, usd=0.001)
        return LLMReply(text=reply.model_dump_json(), parsed=reply, model=request.model, usage=usage)

    async def aclose(self) -> None:
        self.closed = True

    def _reply_for(self, request: LLMRequest) -> BaseModel | Exception:
        if request.purpose == "extract":
            return self._values[request.schema_name]
        reply: Any = self._rule(request)
        if isinstance(reply, bool):
            if request.schema is Transcription:
                return Transcription(passages=[])
            return BinaryEvalResult(reasoning=f"ruled {reply}", result=reply, quotes=self._quotes(request))
        assert isinstance(reply, BaseModel | Exception)
        return reply
