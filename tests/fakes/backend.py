"""Provider adapter with scripted replies or errors, one per request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from judges.llm.client import LLMRequest, Message
from judges.llm.learned_formats import LearnedFormats
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.prompting.blocks import BlockBuilder

GOOD_TEXT = '{"reasoning": "so", "result": true, "quotes": []}'


def raw(text: str = GOOD_TEXT, finish: FinishReason = FinishReason.STOP, **counts: Any) -> RawReply:
    """Return a reply of ``gpt-4o`` with 1000 input and 100 output tokens."""
    return RawReply(text=text, finish=finish, model="gpt-4o", **({"input_tokens": 1000, "output_tokens": 100} | counts))


def long_page() -> tuple[Message, ...]:
    """Return messages with a page that can be shortened."""
    page = BlockBuilder(b"the secret of a test").block("page", "the lamp shop " * 1_000)
    return ({"role": "user", "content": [{"type": "text", "text": f"{page}\n\nIs it so?"}]},)


class ScriptedBackend:
    """Provider adapter that uses its script in order and repeats the last entry."""

    provider = "scripted"
    endpoint = "memory"
    learned_formats: LearnedFormats | None = None

    def __init__(self, *script: RawReply | Exception, gate: asyncio.Event | None = None) -> None:
        self._script = list(script) or [raw()]
        self._gate = gate
        self.sent: list[tuple[LLMRequest, Mapping[str, Any]]] = []
        self.started = asyncio.Event()
        self.closed = False

    async def send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        self.sent.append((request, params))
        self.started.set()
        entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if self._gate is not None:
            await self._gate.wait()
        if isinstance(entry, Exception):
            raise entry
        return entry

    async def aclose(self) -> None:
        self.closed = True
