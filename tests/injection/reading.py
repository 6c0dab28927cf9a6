"""Request parsing of the stand-in judges, which recognise payloads through every disguise that a model could
recognise.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from judges.errors import UnusableKind
from judges.grounding.folding import confusable_skeleton, fold
from judges.llm.client import LLMRequest
from judges.llm.remote import repair_request
from judges.prompting.prompts import load_prompt

_REPAIR = repair_request(LLMRequest(model="m", messages=(), schema=BaseModel), UnusableKind.CUT_QUOTE).messages[-1]
_READ: OrderedDict[int, tuple[object, SentRequest]] = OrderedDict()
_OPENING = re.compile(r"<([a-z_]+) ([0-9a-f]{32})>\n")


@dataclass(frozen=True)
class Block:
    """One block of material between its tags."""

    label: str
    nonce: str
    text: str


@dataclass(frozen=True)
class SentRequest:
    """Parsed request: our rules, the blocks, and all text outside of both."""

    roles: tuple[str, ...]
    text: str
    rules: str
    blocks: tuple[Block, ...]
    outside: str

    def block(self, label: str) -> str:
        return next((block.text for block in self.blocks if block.label == label), "")


def read_request(request: LLMRequest) -> SentRequest:
    """Parse a request, with all messages in one. Cached, because votes on one question share their messages."""
    known = _READ.get(id(request.messages))
    if known is not None and known[0] is request.messages:
        return known[1]
    sent = _read(request)
    _READ[id(request.messages)] = request.messages, sent
    while len(_READ) > 20:
        _READ.popitem(last=False)
    return sent


def _read(request: LLMRequest) -> SentRequest:
    """Parse a request. The message that asks for whole sentences is left out: it has no text of others."""
    messages = [message for message in request.messages if message != _REPAIR]
    contents = [message["content"] for message in messages]
    text = "\n\n".join(part for content in contents for part in _texts(content))
    rules = load_prompt(str(request.prompt).partition("@")[0]).text
    blocks, outside = _parse_blocks(text.replace(rules, "", 1))
    return SentRequest(
        roles=tuple(str(message["role"]) for message in messages),
        text=text,
        rules=rules,
        blocks=tuple(blocks),
        outside=outside,
    )


@lru_cache(maxsize=64)
def folded(text: str) -> str:
    """Return a text folded for comparison; cached, because votes use the same text."""
    return fold(text).text


@lru_cache(maxsize=256)
def key(text: str) -> str:
    """Return a text as letters and digits only, with disguises removed."""
    return re.sub(r"[\W_]+", "", confusable_skeleton(fold(text)).text)


def can_read(payload: str, text: str) -> bool:
    """Return whether a payload is legible anywhere in a text, forwards or backwards."""
    wanted = key(payload)
    if not wanted:
        return payload.strip() in text
    found = key(text)
    return wanted in found or wanted[::-1] in found


def _parse_blocks(text: str) -> tuple[list[Block], str]:
    blocks: list[Block] = []
    outside: list[str] = []
    place = 0
    while (opening := _OPENING.search(text, place)) is not None:
        label, nonce = opening.groups()
        closing = text.find(f"\n</{label} {nonce}>", opening.end() - 1)
        if closing < 0:
            break
        outside.append(text[place : opening.start()])
        blocks.append(Block(label, nonce, text[opening.end() : max(closing, opening.end())]))
        place = closing + len(f"\n</{label} {nonce}>")
    outside.append(text[place:])
    return blocks, "".join(outside)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content if part["type"] == "text")
