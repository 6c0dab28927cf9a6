"""Unrendered text: detects text that is visible according to its styles, but is missing from the screenshot.

There are too many ways to hide text with styles for a complete list of checks. The screenshot shows what a person sees.
It is only used to remove text. If most of a page seems to be missing, the screenshot is assumed to be wrong.
CPU-bound, some 10 ms per megapixel: run it in a thread.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat

from PIL import Image, ImageChops, UnidentifiedImageError

from cache.page_text.text_boxes import Line, Piece, ScreenshotArea, find_area, locate_pieces
from cache.page_text.visible_text import MAX_HIDDEN_CHARS, VisibleText

MIN_CONTRAST = 12
"""Of 255. A region with less contrast has a single colour; JPEG artefacts are smaller."""
MIN_CHANGE = 24
"""Of 255. Minimum change of the screenshot when a visible text is hidden."""
MAX_SHARE = 0.5
MAX_PIECES = 3000
"""For more pieces, the walker does not check whether a floating element covers them."""
_INSET_PX = 2
Box = tuple[float, float, float, float]
"""Left, top, width and height."""
_BLANK_LINES = re.compile(r"\n{3,}")


def hide_unrendered(visible: VisibleText, areas: Sequence[ScreenshotArea], screenshots: Sequence[bytes]) -> VisibleText:
    """Move pieces that the screenshots do not show from the visible to the hidden text.

    ``screenshots`` are JPEGs of ``areas``. Both use the units of ``visible.places``.
    """
    drawn = _are_drawn(visible.places[:MAX_PIECES], areas, screenshots)
    unseen = drawn.count(False)
    if not unseen or unseen > MAX_SHARE * (unseen + drawn.count(True)):
        return visible
    pieces = tuple(zip(visible.places, chain(drawn, repeat(None)), strict=False))
    text, removed = _remove_unrendered(visible.text, pieces)
    return replace(
        visible,
        text=_BLANK_LINES.sub("\n\n", text).strip(),
        hidden="\n".join([*removed, visible.hidden])[:MAX_HIDDEN_CHARS],
        places=tuple(piece for piece, is_drawn in pieces if is_drawn is not False),
    )


def shows_anything(screenshots: Sequence[bytes]) -> bool:
    """Return whether any screenshot has more than one colour. True if none can be decoded."""
    pictures = _decode(screenshots)
    return not pictures or any(_max_contrast(picture) >= MIN_CONTRAST for picture in pictures)


def visible_covered_texts(boxes: Sequence[Box], top: float, width: float, screenshots: Sequence[bytes]) -> list[int]:
    """Return the indices of texts that are visible although an element lies over them.

    Args:
        boxes: Boxes of the texts, in pixels of the page.
        top: Top of the screenshots, in pixels of the page.
        width: Width of the screenshots, in pixels of the page.
        screenshots: Three JPEGs of the same part of the page: with the texts, without them, and with them again.
    """
    pictures = _decode(screenshots)
    if len(pictures) != 3:
        return []
    with_text, without_text, repeated = pictures
    changed, moved = ImageChops.difference(with_text, without_text), ImageChops.difference(with_text, repeated)
    scale = with_text.width / width
    numbers = []
    for number, (left, box_top, box_width, height) in enumerate(boxes):
        line = Line(0, left, box_top - top, box_width, height)
        area = _inner_box(line, scale, 0.0, with_text)
        if area is not None and _max_value(changed.crop(area)) >= MIN_CHANGE > _max_value(moved.crop(area)):
            numbers.append(number)
    return numbers


def _remove_unrendered(text: str, pieces: Sequence[tuple[Piece, bool | None]]) -> tuple[str, list[str]]:
    """Split the text into the rendered text and the unrendered pieces."""
    rendered: list[str] = []
    removed: list[str] = []
    cursor = 0
    unmatched = iter(pieces)
    for start, place in locate_pieces(text, (piece for piece, _ in pieces), 0):
        is_drawn = next(drawn for piece, drawn in unmatched if piece is place)
        words = text[start : start + place.length]
        if is_drawn is False and "\n" not in words:
            rendered.append(text[cursor:start])
            removed.append(words)
            cursor = start + place.length
    return "".join([*rendered, text[cursor:]]), removed


def _are_drawn(
    pieces: Sequence[Piece], areas: Sequence[ScreenshotArea], screenshots: Sequence[bytes]
) -> list[bool | None]:
    """Return for each piece whether the screenshots show anything in its box, or None if this cannot be determined.

    Colours are decoded only if the brightness alone does not show a piece. It takes half the time and a quarter of the
    memory.
    """
    drawn: list[bool | None] = [False] * len(pieces)
    for mode in ("L", "RGB"):
        if False in drawn:
            pictures = _decode(screenshots[: len(areas)], mode)
            drawn = [
                _is_drawn(piece, areas, pictures) if is_drawn is False else is_drawn
                for piece, is_drawn in zip(pieces, drawn, strict=True)
            ]
    return drawn


def _is_drawn(piece: Piece, areas: Sequence[ScreenshotArea], pictures: Sequence[Image.Image]) -> bool | None:
    """Return whether the screenshot shows anything in the box of a piece, or None if this cannot be determined."""
    if piece.in_frame or not any(map(str.isalnum, piece.beginning)):
        return None  # a frame is drawn by another process, perhaps late; punctuation may have too little ink
    lines = [_has_contrast(line, areas, pictures) for line in piece.lines]
    return True if True in lines else None if None in lines or not lines else False


def _has_contrast(line: Line, areas: Sequence[ScreenshotArea], pictures: Sequence[Image.Image]) -> bool | None:
    area = find_area(line, areas[: len(pictures)])
    if area is None:
        return None
    picture = pictures[area.number]
    box = _inner_box(line, picture.width / area.width, area.top, picture)
    return None if box is None else _max_contrast(picture.crop(box)) >= MIN_CONTRAST


def _inner_box(line: Line, scale: float, area_top: float, picture: Image.Image) -> tuple[int, int, int, int] | None:
    """Return the inner part of a line's box in pixels of a screenshot, or None if it is outside."""
    left, top = line.left * scale, (line.top - area_top) * scale
    right, bottom = left + line.width * scale, top + line.height * scale
    inset = min(_INSET_PX, (right - left) / 4)  # the box may contain a single letter
    box = (
        max(0, int(left + inset)),
        max(0, int(top + _INSET_PX)),
        min(picture.width, int(right - inset)),
        min(picture.height, int(bottom - _INSET_PX)),
    )
    if box[2] <= box[0] or box[3] <= box[1]:
        return None
    return box


def _max_contrast(picture: Image.Image) -> int:
    """Return the maximum contrast within one colour channel."""
    return max(high - low for low, high in map(_value_range, picture.split()))


def _max_value(picture: Image.Image) -> int:
    return max(high for _, high in map(_value_range, picture.split()))


def _value_range(band: Image.Image) -> tuple[int, int]:
    low, high = band.getextrema()
    return int(low), int(high)  # type: ignore[arg-type]  # a single band of integers


def _decode(screenshots: Sequence[bytes], mode: str = "RGB") -> list[Image.Image]:
    """Decode the screenshots, up to the first that is damaged."""
    pictures = []
    for screenshot in screenshots:
        try:
            picture: Image.Image = Image.open(io.BytesIO(screenshot))
            picture.draft(mode, picture.size)
            picture.load()
            # Converting an image to its own mode would copy some ten megabytes.
            pictures.append(picture if picture.mode == mode else picture.convert(mode))
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
            break
    return pictures
