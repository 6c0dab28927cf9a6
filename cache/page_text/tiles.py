"""Sections of a tall screenshot: their positions, and joining them for layouts with a single image.

Joining is CPU-bound: run it in a thread.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, UnidentifiedImageError

MAX_TILE_PX = 6000
JPEG_QUALITY = 85
_UNREADABLE = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def tile_spans(height: int, max_tile: int) -> tuple[tuple[int, int], ...]:
    """Return (top, height) of each tile: as few tiles as possible, of equal height except for rounding.

    >>> tile_spans(6000, 6000), tile_spans(10_000, 6000)
    (((0, 6000),), ((0, 5000), (5000, 5000)))
    """
    count = max(1, -(-height // max_tile))
    each = -(-height // count)
    return tuple((top, min(each, height - top)) for top in range(0, max(height, 1), max(each, 1)))


def join_tiles(tiles: Sequence[bytes]) -> bytes | None:
    """Join tiles from top to bottom into one JPEG. One tile is returned unchanged; None if none or not decodable."""
    if len(tiles) < 2:
        return tiles[0] if tiles else None
    try:
        pictures = [Image.open(io.BytesIO(tile)).convert("RGB") for tile in tiles]
    except _UNREADABLE:
        return None
    whole = Image.new(
        "RGB", (max(picture.width for picture in pictures), sum(picture.height for picture in pictures)), "white"
    )
    top = 0
    for picture in pictures:
        whole.paste(picture, (0, top))
        top += picture.height
    return _jpeg(whole)


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()
