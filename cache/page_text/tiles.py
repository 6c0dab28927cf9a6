"""A tall page as pictures of a sane height, and as one picture again for layouts that hold one.

Models scale a picture down until it fits their own bounds; one of 10,000 pixels would come out too small to read,
or be refused. Joining and splitting are CPU-bound: call them in a thread.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, UnidentifiedImageError

MAX_TILE_PX = 6000
MAX_PAGE_PX = 10_000
JPEG_QUALITY = 85
_UNREADABLE = (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def tile_spans(height: int, max_tile: int) -> tuple[tuple[int, int], ...]:
    """(top, height) of each tile: as few as will do, equally high but for a rest.

    >>> tile_spans(6000, 6000), tile_spans(10_000, 6000)
    (((0, 6000),), ((0, 5000), (5000, 5000)))
    """
    count = max(1, -(-height // max_tile))
    each = -(-height // count)
    return tuple((top, min(each, height - top)) for top in range(0, max(height, 1), max(each, 1)))


def join_tiles(tiles: Sequence[bytes]) -> bytes | None:
    """One JPEG of all tiles, top to bottom; of one tile its own bytes, of none or of what is no image None."""
    if len(tiles) < 2:
        return tiles[0] if tiles else None
    try:
        pictures = [Image.open(io.BytesIO(tile)).convert("RGB") for tile in tiles]
    except _UNREADABLE:
        return None
    whole = Image.new("RGB", (max(each.width for each in pictures), sum(each.height for each in pictures)), "white")
    top = 0
    for each in pictures:
        whole.paste(each, (0, top))
        top += each.height
    return _jpeg(whole)


def split_tall(picture: bytes) -> tuple[bytes, ...]:
    """The tiles of a JPEG that is too tall to be one, else itself, byte for byte; also of what is no image."""
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
