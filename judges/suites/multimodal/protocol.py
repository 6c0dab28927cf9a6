"""Two-question dialogue of one ~ step: describe the page, then choose an option. The second answer is scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.llm.client import Message
from judges.llm.families import family_of
from judges.suites.multimodal.messages import api_messages
from judges.suites.multimodal.options import option_name
from judges.suites.multimodal.tilde_rows import TildeRow
from judges.suites.questions import Question, Questions

MAX_TOKENS = 500
_SEPARATOR = "\n\n"
"""Precedes the first answer when it is sent back as an assistant message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Both raw answers of a model."""

    thought: str
    answer: str


def dialogue_questions(row: TildeRow) -> Questions[Dialogue]:
    """Yield the two questions of a row. Encodes its pictures."""
    first = api_messages(row.first_turns)
    thought = yield Question(messages=first)
    between: Message = {"role": "assistant", "content": _SEPARATOR + thought}
    options = tuple((option_name(index), text, text) for index, text in enumerate(row.candidates))
    messages = (*first, between, *api_messages(row.second_turns))
    answer = yield Question(messages=messages, options=options, none=option_name(len(row.candidates)))
    return Dialogue(thought=thought, answer=answer)


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
