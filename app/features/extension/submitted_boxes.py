"""Validation of the text boxes that the browser extension submits with a screenshot."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.api.request_fields import WHOLE_NUMBER
from cache.page_text.submitted_boxes import SubmittedBoxes
from cache.page_text.text_boxes import MAX_LINES, Line, Piece

MAX_CHARS = 4 * 1024 * 1024
_MOST_PX = 1_000_000
_Px: TypeAlias = Annotated[float, Field(ge=-_MOST_PX, le=_MOST_PX, allow_inf_nan=False)]
_Size: TypeAlias = Annotated[float, Field(ge=0, le=_MOST_PX, allow_inf_nan=False)]
_Start: TypeAlias = Annotated[int, Field(ge=0, le=MAX_CHARS), WHOLE_NUMBER]
_Line: TypeAlias = tuple[_Start, _Px, _Px, _Size, _Size]
_Piece: TypeAlias = tuple[
    Annotated[str, Field(max_length=40)],
    Annotated[int, Field(ge=1, le=MAX_CHARS), WHOLE_NUMBER],
    Annotated[list[_Line], Field(min_length=1, max_length=MAX_LINES)],
]


class SubmittedBoxesIn(BaseModel):
    """Text boxes of a screenshot.

    ``pieces`` are tuples of a text's beginning, its length in characters, and its lines. A line is its start within the
    piece and its box (left, top, width, height) in CSS pixels of the page. The screenshot shows ``width`` by ``height``
    of these pixels.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    width: float = Field(gt=0, le=_MOST_PX, allow_inf_nan=False)
    height: float = Field(gt=0, le=_MOST_PX, allow_inf_nan=False)
    pieces: list[_Piece] = Field(max_length=MAX_LINES)

    @model_validator(mode="after")
    def _bounded(self) -> SubmittedBoxesIn:
        if sum(len(lines) for _, _, lines in self.pieces) > MAX_LINES:
            raise ValueError(f"has more than {MAX_LINES} lines")
        for _, length, lines in self.pieces:
            starts = [line[0] for line in lines]
            if starts != sorted(starts) or starts[-1] > length:
                raise ValueError("has lines that are not in text order, or that start beyond the end of the text")
        return self


PLACES_SCHEMA: Final = SubmittedBoxesIn.model_json_schema() | {
    "description": "Boxes of the text in ``image``. The lines of a piece are in text order and start within it; "
    f"at most {MAX_LINES} lines in total"
}


def parse_submitted_boxes(text: str) -> SubmittedBoxes:
    """Parse and validate submitted text boxes.

    Raises:
        ValueError: the text does not match the schema. The message names the location.
    """
    try:
        given = SubmittedBoxesIn.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else str(first["msg"])) from error
    pieces = tuple(
        Piece(begins=begins, length=length, lines=tuple(Line(*line) for line in lines))
        for begins, length, lines in given.pieces
    )
    return SubmittedBoxes(width=given.width, height=given.height, pieces=pieces)
