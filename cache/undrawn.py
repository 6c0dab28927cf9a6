"""Text that is on a page by all that its styles say, and is not in the picture of it: taken out of what is read.

A style can be told in too many ways for a list of tricks to be complete; the picture is what a person sees. It only
ever speaks against a text, and not where it may be mistaken: where most of a page seems not to be drawn, the picture is
what went wrong. Takes time, some ten milliseconds a megapixel: call it off the event loop.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat

from PIL import Image, UnidentifiedImageError

from cache.places import Line, Piece, Sheet, aligned, sheet_of
from cache.visible_text import MAX_HIDDEN_CHARS, VisibleText

MIN_CONTRAST = 12
"""Of 255: below that, a patch of the picture is one colour; what JPEG makes of one differs by less."""
MAX_SHARE = 0.5
MAX_PIECES = 3000
"""Of more the walker does not know whether anything that floats lies over them."""
_INSET_PX = 2
_MANY_BREAKS = re.compile(r"\n{3,}")


def without_undrawn(visible: VisibleText, sheets: Sequence[Sheet], shots: Sequence[bytes]) -> VisibleText:
    """``visible`` without the pieces of which the pictures show nothing; those are with what is hidden.

    ``shots`` are JPEGs of ``sheets``, whose units are those of the places of ``visible``.
    """
    pictures = _decoded(shots[: len(sheets)])
    if not pictures or not visible.places:
        return visible
    drawn = [_is_drawn(piece, sheets, pictures) for piece in visible.places[:MAX_PIECES]]
    unseen = drawn.count(False)
    if not unseen or unseen > MAX_SHARE * (unseen + drawn.count(True)):
        return visible
    pieces = tuple(zip(visible.places, chain(drawn, repeat(None)), strict=False))
    text, gone = _cut_out(visible.text, pieces)
    return replace(
        visible,
        text=_MANY_BREAKS.sub("\n\n", text).strip(),
        hidden="\n".join([*gone, visible.hidden])[:MAX_HIDDEN_CHARS],
        places=tuple(piece for piece, is_drawn in pieces if is_drawn is not False),
    )


def drawn_of(pieces: Sequence[Piece], sheets: Sequence[Sheet], shots: Sequence[bytes]) -> tuple[Piece, ...]:
    """Those of the pieces that the pictures do not speak against."""
    pictures = _decoded(shots[: len(sheets)])
    return tuple(piece for piece in pieces if _is_drawn(piece, sheets, pictures) is not False)


def _cut_out(text: str, pieces: Sequence[tuple[Piece, bool | None]]) -> tuple[str, list[str]]:
    """The text without the pieces that are not drawn, and those."""
    kept: list[str] = []
    gone: list[str] = []
    cursor = 0
    unmatched = iter(pieces)
    for start, found in aligned(text, (piece for piece, _ in pieces), 0):
        is_drawn = next(drawn for piece, drawn in unmatched if piece is found)
        words = text[start : start + found.length]
        if is_drawn is False and "\n" not in words:
            kept.append(text[cursor:start])
            gone.append(words)
            cursor = start + found.length
    return "".join([*kept, text[cursor:]]), gone


def _is_drawn(piece: Piece, sheets: Sequence[Sheet], pictures: Sequence[Image.Image]) -> bool | None:
    """Whether there is anything on the picture where a piece stands; None where that cannot be said."""
    if piece.framed or not any(map(str.isalnum, piece.begins)):
        return None  # a frame is drawn by another process, perhaps late; dots and dashes are soon overlooked
    lines = [_has_contrast(line, sheets, pictures) for line in piece.lines]
    return True if True in lines else None if None in lines or not lines else False


def _has_contrast(line: Line, sheets: Sequence[Sheet], pictures: Sequence[Image.Image]) -> bool | None:
    sheet = sheet_of(line, sheets[: len(pictures)])
    if sheet is None:
        return None
    picture = pictures[sheet.number]
    scale = picture.width / sheet.width
    left, top = line.left * scale, (line.top - sheet.top) * scale
    right, bottom = left + line.width * scale, top + line.height * scale
    beside = min(_INSET_PX, (right - left) / 4)  # a letter may be all there is
    box = (
        max(0, int(left + beside)),
        max(0, int(top + _INSET_PX)),
        min(picture.width, int(right - beside)),
        min(picture.height, int(bottom - _INSET_PX)),
    )
    if box[2] <= box[0] or box[3] <= box[1]:
        return None
    bands = picture.crop(box).split()
    return any(high - low >= MIN_CONTRAST for low, high in (_extremes(band) for band in bands))


def _extremes(band: Image.Image) -> tuple[int, int]:
    low, high = band.getextrema()
    return int(low), int(high)  # type: ignore[arg-type]  # of one band, in whole numbers


def _decoded(shots: Sequence[bytes]) -> list[Image.Image]:
    """The pictures up to the first that cannot be read."""
    pictures = []
    for shot in shots:
        try:
            picture: Image.Image = Image.open(io.BytesIO(shot))
            picture.load()
            # To convert what is in these colours already would copy some ten megabytes.
            pictures.append(picture if picture.mode == "RGB" else picture.convert("RGB"))
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
            break
    return pictures
