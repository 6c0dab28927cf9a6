"""Draws where elements are on a screenshot: what was right in green, what was picked in orange, both in both."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

from PIL import Image, ImageDraw

from app.features.suites.kinds import Box
from judges.suites.errors import DataUnreadable

GOLD, PICKED = "gold", "picked"
MAX_PIXELS = 40_000_000
"""Of a picture that is drawn on: a full page of 1,280 pixels' width may be 31,000 high."""
_COLOURS = {GOLD: (22, 150, 60), PICKED: (230, 110, 0)}
_LINE = 4
_JPEG_MAX = 65_000


def parsed_box(written: str) -> tuple[float, float, float, float] | None:
    """``x,y,w,h`` in page pixels; None for what is no box, and for the ``-1`` of an element without one.

    >>> parsed_box("10,20.5,80,20"), parsed_box("-1,-1,-1,-1"), parsed_box("nan,0,1,1"), parsed_box("x")
    ((10.0, 20.5, 80.0, 20.0), None, None, None)
    """
    try:
        x, y, width, height = (float(part) for part in written.split(","))
    except ValueError:
        return None
    inside = all(-1e6 < value < 1e6 for value in (x, y, width, height))
    return (x, y, width, height) if inside and width > 0 and height > 0 else None


def drawn_on(picture: bytes, boxes: Sequence[Box]) -> tuple[bytes, str]:
    """The picture with the boxes on it, and its media type. Blocks.

    Raises:
        DataUnreadable: it is no picture, or too large a one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is below
            opened = Image.open(io.BytesIO(picture), formats=("PNG", "JPEG", "WEBP", "GIF"))
            if opened.width * opened.height > MAX_PIXELS:
                raise DataUnreadable("screenshot", f"has more than {MAX_PIXELS} pixels")
            image = opened.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataUnreadable("screenshot", "is no picture that can be read") from error
    pen = ImageDraw.Draw(image)
    for box in boxes:
        # Around the element and not over it; the one for what was right lies further out, so that both are seen.
        away = _LINE * (2 if box.role == GOLD else 1)
        left, top = max(box.x - away, 0), max(box.y - away, 0)
        right, bottom = min(box.x + box.width + away, image.width), min(box.y + box.height + away, image.height)
        if right > left and bottom > top:
            pen.rectangle((left, top, right - 1, bottom - 1), outline=_COLOURS[box.role], width=_LINE)
    written = io.BytesIO()
    if image.height <= _JPEG_MAX and image.width <= _JPEG_MAX:
        image.save(written, "JPEG", quality=88)
        return written.getvalue(), "image/jpeg"
    image.save(written, "PNG")
    return written.getvalue(), "image/png"
