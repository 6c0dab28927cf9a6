"""Text boxes submitted by a person's browser, validated against the submitted screenshot.

The browser sends boxes in pixels of the page, and the size of the part of the page that its screenshot shows. None of
it is trusted: the screenshot must have these proportions, boxes are clipped to it, and lines where the screenshot is
blank are dropped. CPU-bound, some 10 ms per megapixel: run it in a thread.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from cache.page_text.text_boxes import Piece, ScreenshotArea, places_json
from cache.page_text.unrendered_text import rendered_pieces

MAX_HEIGHT_DEVIATION = 0.02
"""Maximum relative difference between the height of the screenshot and the submitted height of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedBoxes:
    """Submitted boxes, in pixels of the page. The screenshot shows ``width`` x ``height`` from the top left."""

    width: float
    height: float
    pieces: tuple[Piece, ...]


def validate_boxes(submitted: SubmittedBoxes, text: str, screenshots: Sequence[bytes]) -> bytes | None:
    """Return the boxes of ``text`` in the form of ``cache.page_text.text_boxes``; None if there are none."""
    areas = _screenshot_areas(submitted, screenshots)
    return places_json(text, [(areas, rendered_pieces(submitted.pieces, areas, screenshots))]) if areas else None


def _screenshot_areas(submitted: SubmittedBoxes, screenshots: Sequence[bytes]) -> list[ScreenshotArea]:
    """Return the part of the page in each screenshot, or none if their size does not match the submitted size."""
    areas: list[ScreenshotArea] = []
    top = 0.0
    for number, screenshot in enumerate(screenshots):
        size = _image_size(screenshot)
        if size is None:
            return []
        height = size[1] * submitted.width / size[0]
        areas.append(ScreenshotArea(number=number, top=top, width=submitted.width, height=height))
        top += height
    return areas if areas and abs(top - submitted.height) <= MAX_HEIGHT_DEVIATION * submitted.height else []


def _image_size(screenshot: bytes) -> tuple[int, int] | None:
    try:
        with Image.open(io.BytesIO(screenshot)) as opened:
            return opened.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None
