"""One row of Multimodal-Mind2Web~: a step with its two prompts, its candidates and what was right.

Rows come from other people's files. Each field is checked, and an error names the place and the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.messages import Turn, read_turns

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
"""What scoring needs; asking a model needs the two prompts too."""
PROMPT_COLUMNS = ("prompt_0", "prompt_1")
BOXES_COLUMN = "boxes"
"""Only in our own snapshots: where the elements are on the screenshot."""
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class TildeRow:
    """A step. ``targets`` are all correct elements, ``valid`` is False where there are none.

    ``place`` says where it was read, ``position`` counts the rows of the data from 0. ``boxes`` holds ``x,y,w,h`` in
    page pixels by element id, for as many elements as are known.
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
    first_turns: tuple[Turn, ...] = ()
    second_turns: tuple[Turn, ...] = ()
    boxes: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The step's name within the data."""
        return f"{self.task_id}:{self.step}"


def read_tilde_row(values: Mapping[str, Any], *, place: str, position: int, prompts: bool = True) -> TildeRow:
    """Check and convert a row; without ``prompts`` those columns are not looked at.

    Raises:
        DataUnreadable: names the first field that is missing or wrong.
    """
    row = Fields(values, place)
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
        valid=row.truth("is_valid"),
        first_turns=read_turns(row.decoded("prompt_0"), place=f"{place}, field prompt_0") if prompts else (),
        second_turns=read_turns(row.decoded("prompt_1"), place=f"{place}, field prompt_1") if prompts else (),
        boxes=row.boxes(BOXES_COLUMN),
    )


class Fields:
    """The fields of one row, read by the type they must have."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = values
        self._place = place

    def error(self, name: str, problem: str) -> DataUnreadable:
        return DataUnreadable(f"{self._place}, field {name}", problem)

    def given(self, name: str) -> Any:
        if name not in self._values:
            raise self.error(name, "is missing")
        return self._values[name]

    def text(self, name: str, *, needed: bool = False) -> str:
        """A text; a null or missing one is empty unless it is ``needed``."""
        value = self.given(name) if needed else self._values.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value):
            raise self.error(name, f"must be a text, not {_kind(value)}")
        return value

    def whole(self, name: str) -> int:
        """A whole number, which some files write as a text."""
        value = self.given(name)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, f"must be a whole number, not {_kind(value)}")
        return value

    def truth(self, name: str) -> bool:
        """A truth value, which the published files give as a boolean and their description as a text."""
        value = self.given(name)
        written = str(value).strip().lower() if isinstance(value, bool | str | int) else ""
        if written in _TRUE or written in _FALSE:
            return written in _TRUE
        raise self.error(name, f"must be true or false, not {_kind(value)}")

    def decoded(self, name: str) -> Any:
        """A value that may stand there as JSON text."""
        value = self.given(name)
        return self.json(name, value) if isinstance(value, str) else value

    def json(self, name: str, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error(name, f"is no JSON: {error}") from error

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, none of it null. A null list is an empty one."""
        value = self.decoded(name)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
            raise self.error(name, f"must be a list of texts, not {_kind(value)}")
        return tuple(value)

    def boxes(self, name: str) -> dict[str, str]:
        if self._values.get(name) is None:
            return {}
        value = self.decoded(name)
        if not isinstance(value, Mapping) or not all(isinstance(box, str) for box in value.values()):
            raise self.error(name, f"must map element ids to boxes, not {_kind(value)}")
        return {str(key): box for key, box in value.items()}


def _kind(value: Any) -> str:
    """What a value is, for an error: short and without what others wrote in it at length."""
    shown = repr(value) if value is None or isinstance(value, bool | int | float) else ""
    return shown or {"str": "a text", "dict": "an object", "list": "a list"}.get(type(value).__name__, "something else")
