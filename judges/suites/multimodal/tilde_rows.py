"""Rows of Multimodal-Mind2Web~: steps with two prompts, candidates and gold elements and operation.

The files are untrusted. Every field is validated, and errors name the position and the field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judges.suites.errors import DataUnreadable
from judges.suites.multimodal.messages import ChatTurn, read_turns

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
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


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


class RowFields:
    """Typed access to the fields of one row."""

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
        """Return a string. A null or missing value is empty unless it is ``needed``."""
        value = self.given(name) if needed else self._values.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value):
            requirement = "a non-empty string" if needed else "a string"
            raise self.error(name, f"must be {requirement}, not {_kind(value)}")
        return value

    def whole(self, name: str) -> int:
        """Return a non-negative integer, which some files write as a string."""
        value = self.given(name)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, f"must be an integer >= 0, not {_kind(value)}")
        return value

    def boolean(self, name: str) -> bool:
        """Return a boolean. The published files contain booleans, but their description specifies strings."""
        value = self.given(name)
        written = str(value).strip().lower() if isinstance(value, bool | str | int) else ""
        if written in _TRUE or written in _FALSE:
            return written in _TRUE
        raise self.error(name, f"must be true or false, not {_kind(value)}")

    def decoded(self, name: str) -> Any:
        """Return a value that may be a JSON string."""
        value = self.given(name)
        return self.json(name, value) if isinstance(value, str) else value

    def json(self, name: str, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error(name, f"is not valid JSON: {error}") from error

    def texts(self, name: str, *, needed: bool = False) -> tuple[str, ...]:
        """Return a list of strings. A null list is empty unless it is ``needed``."""
        value = self.decoded(name)
        if value is None and not needed:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.error(name, f"must be a list of strings, not {_kind(value)}")
        wrong = next((place for place, each in enumerate(value) if not isinstance(each, str)), None)
        if wrong is not None:
            raise self.error(name, f"must be a list of strings; item {wrong} is {_kind(value[wrong])}")
        return tuple(value)

    def boxes(self, name: str) -> dict[str, str]:
        if self._values.get(name) is None:
            return {}
        value = self.decoded(name)
        if not isinstance(value, Mapping) or not all(isinstance(box, str) for box in value.values()):
            raise self.error(name, f"must map element ids to boxes, not {_kind(value)}")
        return {str(key): box for key, box in value.items()}


def _kind(value: Any) -> str:
    """Return a short description of a value for an error. Long untrusted text is not quoted."""
    if value == "":
        return "an empty string"
    value_text = repr(value) if value is None or isinstance(value, bool | int | float) else ""
    return value_text or {"str": "a string", "dict": "an object", "list": "a list"}.get(
        type(value).__name__, "an unsupported value"
    )
