"""Chat messages as rows carry them, made into what is sent.

A row's parts have both keys ``text`` and ``image_url``, the unused one null; a model's API takes only the used one.
Pictures are passed on exactly as they are given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.llm.client import Message
from judges.llm.images import DataURI
from judges.suites.errors import DataUnreadable

_ROLES = frozenset({"system", "user", "assistant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture's address, most often a data URI; ``detail`` as the row asks for it, if it does."""

    url: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message: its role and its parts in order."""

    role: str
    parts: tuple[str | Picture, ...]

    @property
    def text(self) -> str:
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(part for part in self.parts if isinstance(part, Picture))


def read_turns(value: Any, *, place: str) -> tuple[Turn, ...]:
    """The messages of a prompt.

    Raises:
        DataUnreadable: it is no list of messages, or a part is neither text nor picture.
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise DataUnreadable(place, "must be a list of chat messages")
    return tuple(_turn(message, f"{place}.{number}") for number, message in enumerate(value))


def _turn(message: Any, place: str) -> Turn:
    if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
        raise DataUnreadable(place, "must be a message with the role system, user or assistant")
    content = message.get("content")
    if isinstance(content, str):
        return Turn(role=message["role"], parts=(content,))
    if not isinstance(content, Sequence) or not content:
        raise DataUnreadable(f"{place}.content", "must be a text or a list of parts")
    parts = tuple(_part(part, f"{place}.content.{number}") for number, part in enumerate(content))
    return Turn(role=message["role"], parts=parts)


def _part(part: Any, place: str) -> str | Picture:
    if not isinstance(part, Mapping):
        raise DataUnreadable(place, "must be an object with a text or an image_url")
    text, picture = part.get("text"), part.get("image_url")
    if isinstance(picture, Mapping):
        url, detail = picture.get("url"), picture.get("detail")
    else:
        url, detail = picture, None
    if isinstance(text, str) and url is None:
        return text
    if isinstance(url, str) and url and text is None:
        return Picture(url=url, detail=detail if isinstance(detail, str) else None)
    raise DataUnreadable(place, "must have exactly one of text and image_url")


def sent(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """The messages as a model's API takes them. Encodes pictures: call it in a thread."""
    return tuple({"role": turn.role, "content": _content(turn)} for turn in turns)


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    if turn.role != "user" and not turn.pictures:
        return turn.text  # some servers take parts only from a user
    return [{"type": "text", "text": part} if isinstance(part, str) else _image(part) for part in turn.parts]


def _image(picture: Picture) -> dict[str, Any]:
    detail = {} if picture.detail is None else {"detail": picture.detail}
    return {"type": "image_url", "image_url": {"url": DataURI.given(picture.url), **detail}}


def for_the_record(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """The messages as a report shows them: pictures by their digest, which is as good as the picture and shorter."""
    return [{"role": turn.role, "text": "\n".join(map(_named, turn.parts))} for turn in turns]


def _named(part: str | Picture) -> str:
    if isinstance(part, str):
        return part
    return f"[picture, sha256 {hashlib.sha256(part.url.encode('utf-8', 'surrogatepass')).hexdigest()}]"
