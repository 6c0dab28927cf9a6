"""Screenshot tiles: splits tall screenshots into sections, and joins sections for layouts with a single image.

Models downscale images to their own limits. An image of 10,000 pixels would become unreadable or be rejected.
Joining and splitting are CPU-bound: run them in a thread.
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


def split_tall(picture: bytes) -> tuple[bytes, ...]:
    """Split a JPEG that is too tall into tiles. Other images and undecodable data are returned unchanged."""
    try:
        with Image.open(io.BytesIO(picture)) as whole:
            if whole.height <= MAX_TILE_PX:
                return (picture,)
            flat = whole.convert("RGB")
    except _UNREADABLE:
        return (picture,)
    spans = tile_spans(flat.height, MAX_TILE_PX)
    return tuple(_jpeg(flat.crop((0, top, flat.width, top + height))) for top, height in spans)


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue()
