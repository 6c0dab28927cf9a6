"""Rows of Multimodal-Mind2Web~: steps with two prompts, candidates and gold elements and operation.

The files are untrusted. Every field is validated, and errors name the position and the field.

Chat messages of rows are converted for a model API. Each part of a row's message has both keys ``text`` and
``image_url``, one of them null. A model API accepts only the key that is used. Pictures are passed on byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judges.llm.client import Message
from judges.llm.encoding import DataURI
from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.row_files import RowFields

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """Picture URL, usually a data URI; ``detail`` if the row specifies it."""

    url: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """One message: role and parts in order."""

    role: str
    parts: tuple[str | ImagePart, ...]

    @property
    def text(self) -> str:
        return "\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def pictures(self) -> tuple[ImagePart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ImagePart))


def read_turns(value: Any, *, place: str) -> tuple[ChatTurn, ...]:
    """Parse the messages of a prompt.

    Raises:
        DataUnreadable: the value is not a list of messages, or a part is neither text nor picture.
    """
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise DataUnreadable(place, "must be a list of chat messages")
    return tuple(_turn(message, f"{place}.{number}") for number, message in enumerate(value))


def _turn(message: Any, place: str) -> ChatTurn:
    if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
        raise DataUnreadable(place, "must be a message with the role system, user or assistant")
    content = message.get("content")
    if isinstance(content, str):
        return ChatTurn(role=message["role"], parts=(content,))
    if not isinstance(content, Sequence) or not content:
        raise DataUnreadable(f"{place}.content", "must be a string or a list of parts")
    parts = tuple(_part(part, f"{place}.content.{number}") for number, part in enumerate(content))
    return ChatTurn(role=message["role"], parts=parts)


def _part(part: Any, place: str) -> str | ImagePart:
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
        return ImagePart(url=url, detail=detail if isinstance(detail, str) else None)
    raise DataUnreadable(place, "must have exactly one of text and image_url")


def api_messages(turns: Sequence[ChatTurn]) -> tuple[Message, ...]:
    """Return the messages in the form of a model API. Encodes pictures, so call it in a thread."""
    return tuple({"role": turn.role, "content": _content(turn)} for turn in turns)


def _content(turn: ChatTurn) -> str | list[dict[str, Any]]:
    if turn.role != "user" and not turn.pictures:
        return turn.text  # some servers accept parts only in user messages
    return [{"type": "text", "text": part} if isinstance(part, str) else _image(part) for part in turn.parts]


def _image(picture: ImagePart) -> dict[str, Any]:
    detail = {} if picture.detail is None else {"detail": picture.detail}
    return {"type": "image_url", "image_url": {"url": DataURI.given(picture.url), **detail}}


def report_messages(turns: Sequence[ChatTurn]) -> list[dict[str, str]]:
    """Return the messages for a report, with each picture replaced by its digest."""
    return [{"role": turn.role, "text": "\n".join(map(_record_text, turn.parts))} for turn in turns]


def _record_text(part: str | ImagePart) -> str:
    if isinstance(part, str):
        return part
    return f"[picture, sha256 {hashlib.sha256(part.url.encode('utf-8', 'surrogatepass')).hexdigest()}]"


SCORED_COLUMNS = (
    "task_id",
    "split",
    "step",
    "task_description",
    "candidates",
    "target_elements",
    "target_op",
    "target_op_value",
    "website",
    "domain",
    "subdomain",
    "is_valid",
)
"""Columns needed for scoring. Asking a model also needs ``PROMPT_COLUMNS``."""
PROMPT_COLUMNS = ("prompt_0", "prompt_1")
BOXES_COLUMN = "boxes"
"""Positions of elements on the screenshot. Only in snapshots built by this project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeRow:
    """One step. ``targets`` are all correct elements. ``valid``: the step is scored (column ``is_valid``).

    ``place`` names the position for error messages; ``position`` counts the rows of the data from 0. ``boxes`` maps
    element ids to ``x,y,w,h`` in page pixels, as far as known.
    """

    place: str
    position: int
    task_id: str
    step: int
    split: str
    task: str
    candidates: tuple[str, ...]
    targets: tuple[str, ...]
    op: str
    value: str
    website: str
    domain: str
    subdomain: str
    valid: bool
    first_turns: tuple[ChatTurn, ...] = ()
    second_turns: tuple[ChatTurn, ...] = ()
    boxes: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the step within the data."""
        return f"{self.task_id}:{self.step}"


def read_tilde_row(values: Mapping[str, Any], *, place: str, position: int, prompts: bool = True) -> TildeRow:
    """Validate and convert a row. Without ``prompts`` the prompt columns are ignored.

    Raises:
        DataUnreadable: a field is missing or malformed. The message names the first one.
    """
    row = RowFields(values, place)
    return TildeRow(
        place=place,
        position=position,
        task_id=row.text("task_id", needed=True),
        step=row.whole("step"),
        split=row.text("split"),
        task=row.text("task_description"),
        candidates=row.texts("candidates"),
        targets=row.texts("target_elements"),
        op=row.text("target_op", needed=True),
        value=row.text("target_op_value"),
        website=row.text("website"),
        domain=row.text("domain"),
        subdomain=row.text("subdomain"),
        valid=row.boolean("is_valid"),
        first_turns=read_turns(row.decoded("prompt_0"), place=f"{place}, field prompt_0") if prompts else (),
        second_turns=read_turns(row.decoded("prompt_1"), place=f"{place}, field prompt_1") if prompts else (),
        boxes=row.boxes(BOXES_COLUMN),
    )
