"""Element boxes on screenshots: green for gold elements, orange for the picked element."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from judges.suites.errors import DataUnreadable

GOLD, PICKED = "gold", "picked"
MAX_PIXELS = 40_000_000
"""Maximum size of a screenshot in pixels: 1,280 pixels wide and about 31,000 high."""
_COLOURS = {GOLD: (22, 150, 60), PICKED: (230, 110, 0)}
_LINE_WIDTH = 4
_JPEG_MAX_SIDE = 65_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Element on the screenshot, in pixels of the screenshot. ``role`` is gold or picked."""

    role: str
    id: str
    x: float
    y: float
    width: float
    height: float


def parse_box(written: str) -> tuple[float, float, float, float] | None:
    """Parse ``x,y,w,h`` in page pixels. Return None for an invalid box and for the ``-1`` of an element without one.

    >>> parse_box("10,20.5,80,20"), parse_box("-1,-1,-1,-1"), parse_box("nan,0,1,1"), parse_box("x")
    ((10.0, 20.5, 80.0, 20.0), None, None, None)
    """
    try:
        x, y, width, height = (float(part) for part in written.split(","))
    except ValueError:
        return None
    is_in_range = all(-1e6 < value < 1e6 for value in (x, y, width, height))
    return (x, y, width, height) if is_in_range and width > 0 and height > 0 else None


def boxes_of(written: Mapping[str, str], *, gold: Iterable[str], picked: Iterable[str]) -> Iterator[Box]:
    """Yield the boxes of the gold elements, then of the picked one. ``written`` has the boxes of the data by id."""
    for role, ids in ((GOLD, gold), (PICKED, picked)):
        for id in ids:
            box = parse_box(written.get(id, ""))
            if box is not None:
                yield Box(role=role, id=id, x=box[0], y=box[1], width=box[2], height=box[3])


def draw_boxes(picture: bytes, boxes: Sequence[Box]) -> tuple[bytes, str]:
    """Draw the boxes on a screenshot. Return the image and its media type. Blocks.

    Raises:
        DataUnreadable: the data are not an image, or the image is too large.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # MAX_PIXELS applies instead
            source = Image.open(io.BytesIO(picture), formats=("PNG", "JPEG", "WEBP", "GIF"))
            if source.width * source.height > MAX_PIXELS:
                raise DataUnreadable("screenshot", f"has more than {MAX_PIXELS} pixels")
            image = source.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataUnreadable("screenshot", "is not a readable image") from error
    pen = ImageDraw.Draw(image)
    for box in boxes:
        # Draw around the element. The gold box is larger, so that both boxes of an element are visible.
        margin = _LINE_WIDTH * (2 if box.role == GOLD else 1)
        left, top = max(box.x - margin, 0), max(box.y - margin, 0)
        right, bottom = min(box.x + box.width + margin, image.width), min(box.y + box.height + margin, image.height)
        if right > left and bottom > top:
            pen.rectangle((left, top, right - 1, bottom - 1), outline=_COLOURS[box.role], width=_LINE_WIDTH)
    written = io.BytesIO()
    if image.height <= _JPEG_MAX_SIDE and image.width <= _JPEG_MAX_SIDE:
        image.save(written, "JPEG", quality=88)
        return written.getvalue(), "image/jpeg"
    image.save(written, "PNG")
    return written.getvalue(), "image/png"
