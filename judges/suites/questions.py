"""Questions of a step as a generator, whose replies come from a model.

A generator yields the messages of each question, receives the raw reply, and returns the outcome of the step. It blocks
for milliseconds, because it parses pages, so it is advanced in a thread.

Options have the letters A to Z, then AA, AB and so on. The last option is "none".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase as _LETTERS
from typing import Any, Generic, TypeAlias, TypeVar

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMRequest, Message
from judges.llm.models import family_of
from rubrics.verdict import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """Outcome of a step whose questions are all answered."""

    outcome: T


Questions: TypeAlias = Generator[tuple[Message, ...], str, T]
Ask: TypeAlias = Callable[[tuple[Message, ...]], Awaitable[tuple[str, Usage]]]


def advance(questions: Questions[T], raw: str | None) -> tuple[Message, ...] | Finished[T]:
    """Pass the reply to the last question, or None at the start. Return the next question or the outcome. Blocks."""
    try:
        return next(questions) if raw is None else questions.send(raw)
    except StopIteration as stop:
        return Finished(stop.value)


async def ask_all(questions: Questions[T], ask: Ask) -> tuple[T, Usage]:
    """Answer every question with ``ask``. Return the outcome and the usage.

    Raises:
        LLMError: a question got no reply. ``usage`` of the error covers the whole step.
    """
    usage, raw = Usage(), None
    while not isinstance(state := await asyncio.to_thread(advance, questions, raw), Finished):
        try:
            raw, cost = await ask(state)
        except LLMError as error:
            error.usage = usage + error.usage
            raise
        usage += cost
    return state.outcome, usage


async def reply_or_empty(client: LLMClient, request: LLMRequest) -> tuple[str, Usage]:
    """Return the reply of a model. A reply that is empty even after a retry is the model's answer and not a fault."""
    try:
        reply = await client.complete(request)
    except LLMOutputUnusable as error:
        if error.kind is not UnusableKind.EMPTY:
            raise
        return "", error.usage
    return reply.text, reply.usage


def request_params(model: str, *, max_tokens: int, temperature: float = 0.0) -> Mapping[str, Any]:
    """Return the parameters of every request, or none for a reasoning model.

    A reasoning model accepts no temperature, and its reasoning would use up the limit.

    >>> dict(request_params("gpt-4o", max_tokens=50)), dict(request_params("gpt-6-luna", max_tokens=50))
    ({'max_tokens': 50, 'temperature': 0.0}, {})
    """
    family = family_of(model)
    if family is not None and "temperature" not in family.params:
        return {}
    return {"max_tokens": max_tokens, "temperature": temperature}


_MAX_LETTERS = 4
"""Longer words of capital letters are no option of any step."""
NONE_OF_THESE = "None of the other options match the correct element"
"""Text of the last option. Published answers and parsers rely on it."""


def option_name(index: int) -> str:
    """Return the letters of the option at a 0-based index; two letters from index 26.

    >>> [option_name(index) for index in (0, 25, 26, 52, 701, 702)]
    ['A', 'Z', 'AA', 'BA', 'ZZ', 'AAA']
    """
    if index < 0:
        raise ValueError(f"option index {index} is out of range: it must not be negative")
    name = ""
    while index >= 0:
        index, last = divmod(index, len(_LETTERS))
        name, index = _LETTERS[last] + name, index - 1
    return name


def option_index(name: str) -> int | None:
    """Return the index of the option called ``name``, or None if it is not an option name.

    >>> option_index("V"), option_index("NO"), option_index("Invalid")
    (21, 378, None)
    """
    if not 1 <= len(name) <= _MAX_LETTERS or any(letter not in _LETTERS for letter in name):
        return None
    index = -1
    for letter in name:
        index = (index + 1) * len(_LETTERS) + _LETTERS.index(letter)
    return index


def option_lines(texts: Sequence[str]) -> list[str]:
    """Return the options as shown to a model, one per line, with the "none" option last."""
    return [f"{option_name(index)}. {text}" for index, text in enumerate([*texts, NONE_OF_THESE])]
