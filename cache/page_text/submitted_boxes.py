"""Where text stands in a picture that somebody's own browser put together. Nothing of it is taken on trust.

The browser tells the boxes in pixels of the page, and how much of the page its picture shows. The picture is decoded
first: it has to be of these proportions, every box is kept within it, and a line where the picture shows nothing at all
has no place. Takes some ten milliseconds a megapixel: call it off the event loop.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from cache.page_text.text_boxes import Piece, Sheet, places_json
from cache.page_text.unrendered_text import drawn_of

MOST_OFF = 0.02
"""Share by which a picture may be higher or lower than the page that it is said to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldPlaces:
    """Pieces of text in pixels of a page, of which a picture shows ``width`` by ``height`` from the top left."""

    width: float
    height: float
    pieces: tuple[Piece, ...]


def places_in(told: ToldPlaces, text: str, shots: Sequence[bytes]) -> bytes | None:
    """Return the boxes of ``text`` in the form of ``cache.page_text.text_boxes``; None if there are none."""
    sheets = _sheets(told, shots)
    return places_json(text, [(sheets, drawn_of(told.pieces, sheets, shots))]) if sheets else None


def _sheets(told: ToldPlaces, shots: Sequence[bytes]) -> list[Sheet]:
    """What of the page each picture shows, one below the other; none where they do not fit what was told."""
    sheets: list[Sheet] = []
    top = 0.0
    for number, shot in enumerate(shots):
        size = _size(shot)
        if size is None:
            return []
        height = size[1] * told.width / size[0]
        sheets.append(Sheet(number=number, top=top, width=told.width, height=height))
        top += height
    return sheets if sheets and abs(top - told.height) <= MOST_OFF * told.height else []


def _size(shot: bytes) -> tuple[int, int] | None:
    try:
        with Image.open(io.BytesIO(shot)) as opened:
            return opened.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None
