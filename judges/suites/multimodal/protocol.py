"""The two questions of one ~ step: think about the page, then choose from the list. The second answer is scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest, Message
from judges.llm.families import family_of
from judges.suites.multimodal.messages import sent
from judges.suites.multimodal.tilde_rows import TildeRow
from rubrics.verdict import Usage

MAX_TOKENS = 500
_GLUE = "\n\n"
"""Before the first answer, where it is given back as the assistant's own turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """What a model answered, as it wrote it, and what both answers cost."""

    thought: str
    answer: str
    model: str
    usage: Usage


async def ask(row: TildeRow, client: LLMClient, model: str) -> Dialogue:
    """Hold the dialogue of a row; ``model`` is a bare name.

    Raises:
        LLMError: one of the two questions got no usable reply; its usage is that of both.
    """
    first = await asyncio.to_thread(sent, row.first_turns)
    second = await asyncio.to_thread(sent, row.second_turns)
    thought = await _said(client, _request(model, first))
    between: Message = {"role": "assistant", "content": _GLUE + thought.text}
    try:
        answer = await _said(client, _request(model, (*first, between, *second)))
    except LLMError as error:
        error.usage = thought.usage + error.usage
        raise
    return Dialogue(thought=thought.text, answer=answer.text, model=answer.model, usage=thought.usage + answer.usage)


async def _said(client: LLMClient, request: LLMRequest) -> LLMReply:
    """The reply, empty where the model answered, twice, and said nothing: that is its answer and no fault of others."""
    try:
        return await client.complete(request)
    except LLMOutputUnusable as error:
        if error.kind is not UnusableKind.EMPTY:
            raise
        return LLMReply(text="", parsed=None, model=request.model, usage=error.usage)


def request_params(model: str) -> Mapping[str, Any]:
    """The parameters of every question: as published, or the nearest that a reasoning model takes.

    Such a model takes no temperature, and its reasoning would use up the limit: it is sent none.

    >>> dict(request_params("gpt-4o")), dict(request_params("gpt-6-luna"))
    ({'max_tokens': 500, 'temperature': 0.0}, {})
    """
    family = family_of(model)
    if family is not None and "temperature" not in family.params:
        return {}
    return {"max_tokens": MAX_TOKENS, "temperature": 0.0}


def _request(model: str, messages: tuple[Message, ...]) -> LLMRequest:
    return LLMRequest(model=model, messages=messages, purpose="free", params=request_params(model))
