"""Two-question dialogue of one ~ step: describe the page, then choose an option. The second answer is scored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMReply, LLMRequest, Message
from judges.llm.families import family_of
from judges.suites.multimodal.messages import api_messages
from judges.suites.multimodal.tilde_rows import TildeRow
from rubrics.verdict import Usage

MAX_TOKENS = 500
_SEPARATOR = "\n\n"
"""Precedes the first answer when it is sent back as an assistant message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Both raw answers of a model and their usage."""

    thought: str
    answer: str
    model: str
    usage: Usage


async def ask(row: TildeRow, client: LLMClient, model: str) -> Dialogue:
    """Run the dialogue of a row. ``model`` is a name without provider.

    Raises:
        LLMError: one of the two requests got no usable reply. ``usage`` of the error covers both.
    """
    first = await asyncio.to_thread(api_messages, row.first_turns)
    second = await asyncio.to_thread(api_messages, row.second_turns)
    thought = await _complete(client, _request(row, model, first))
    between: Message = {"role": "assistant", "content": _SEPARATOR + thought.text}
    try:
        answer = await _complete(client, _request(row, model, (*first, between, *second)))
    except LLMError as error:
        error.usage = thought.usage + error.usage
        raise
    return Dialogue(thought=thought.text, answer=answer.text, model=answer.model, usage=thought.usage + answer.usage)


async def _complete(client: LLMClient, request: LLMRequest) -> LLMReply:
    """Return the reply. A reply that is empty even after a retry counts as the model's answer and not as a fault."""
    try:
        return await client.complete(request)
    except LLMOutputUnusable as error:
        if error.kind is not UnusableKind.EMPTY:
            raise
        return LLMReply(text="", parsed=None, model=request.model, usage=error.usage)


def request_params(model: str) -> Mapping[str, Any]:
    """Return the parameters of every request: the published ones, or none for a reasoning model.

    A reasoning model accepts no temperature, and its reasoning would use up the token limit.

    >>> dict(request_params("gpt-4o")), dict(request_params("gpt-6-luna"))
    ({'max_tokens': 500, 'temperature': 0.0}, {})
    """
    family = family_of(model)
    if family is not None and "temperature" not in family.params:
        return {}
    return {"max_tokens": MAX_TOKENS, "temperature": 0.0}


def _request(row: TildeRow, model: str, messages: tuple[Message, ...]) -> LLMRequest:
    metadata = {"sample_id": row.id, "task_id": row.task_id, "step": str(row.step)}
    return LLMRequest(model=model, messages=messages, params=request_params(model), metadata=metadata)
