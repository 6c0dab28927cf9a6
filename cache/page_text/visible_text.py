"""Visible text of a rendered page: runs the walker script in every frame and combines the results.

Unrendered text is visible according to its styles, but is missing from the screenshot.

There are too many ways to hide text with styles for a complete list of checks. The screenshot shows what a person sees.
It is only used to remove text. If most of a page seems to be missing, the screenshot is assumed to be wrong.
CPU-bound, some 10 ms per megapixel: run it in a thread.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, Protocol

from PIL import Image, ImageChops, UnidentifiedImageError

from cache.backends.plain_html import CONSENT_NAMES, CONSENT_WORDS, CONSENT_WORDS_WITHIN
from cache.capture import ALT_TEXT_HEADING
from cache.page_scripts import script
from cache.page_text.text_boxes import (
    FrameText,
    Line,
    Piece,
    ScreenshotArea,
    Viewport,
    find_area,
    insert_frames,
    locate_pieces,
)

MAX_TEXT_CHARS = 24_000_000
MAX_HIDDEN_CHARS = 200_000
MAX_FRAMES = 20
MAX_HOSTS = 500
MAX_PLACES = 20_000
"""Maximum number of lines with text boxes."""
MAX_PROBES = 2_500
"""Maximum number of character position lookups (some 10 us each) to find line breaks. After that, positions are
estimated from the width of the lines."""
MAX_COVERED = 500
"""Maximum number of covered pieces of text that are checked with screenshots."""
_FRAME_DEPTH = 3
_FRAME_S = 5.0
_MARK = "\ue000"  # private use character: removed from page text
_FRAME_MARKER = re.compile(f"{_MARK}(\\d+){_MARK}")
_CONSENT_WORDS = re.compile(CONSENT_WORDS, re.IGNORECASE)


class FrameView(Protocol):
    """A document in a rendered page, as the walker accesses it."""

    async def run(self, function: str, argument: object) -> Any:
        """Return the value of a JavaScript function, called in an isolated world of this document."""

    async def children(self) -> Sequence[tuple[str, FrameView]]:
        """Return inner frames with their position in this document, as returned by the script ``element_path``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleText:
    """Text of a rendered page.

    Attributes:
        text: Visible text.
        hidden: Text that is not visible, followed by a section with the alternative texts of images.
        facts: Facts of the main document.
        places: Text boxes, in pixels of the page.
    """

    title: str
    text: str
    hidden: str
    links: tuple[tuple[str, str], ...]
    headlines: tuple[str, ...]
    facts: Mapping[str, Any]
    truncated: bool
    places: tuple[Piece, ...] = ()


async def read_visible_text(main: FrameView) -> VisibleText:
    """Return the visible text of a page and its frames: headings with ``#``, lists with ``-``, tables with ``|``."""
    walked = await _run_walker(main, 8000)
    text, hidden, frames = await _insert_frame_texts(main, walked, depth=1)
    hidden = _append_alternatives(hidden, walked["alternatives"])
    return VisibleText(
        title=str(walked["title"]),
        text=text[:MAX_TEXT_CHARS].strip(),
        hidden=hidden[:MAX_HIDDEN_CHARS],
        links=tuple(dict.fromkeys((str(label), str(target)) for label, target in walked["links"])),
        headlines=tuple(str(headline) for headline in walked["headlines"]),
        facts=_facts(walked, frames),
        truncated=bool(walked["truncated"]) or len(text) > MAX_TEXT_CHARS,
        places=_places(walked, frames),
    )


def _facts(walked: Mapping[str, Any], pieces: Mapping[int, _Frame]) -> Mapping[str, Any]:
    """Merge the facts of frames into those of the document, because a frame can contain a consent or login form."""
    framed = [frame.facts for frame in pieces.values()]
    consent_texts = (pieces[number].text for number in walked.get("consentFrames", ()) if number in pieces)
    covering = [
        number
        for number in walked.get("coveringFrames", ())
        if number in pieces
        and (number in walked["consentFrames"] or _CONSENT_WORDS.search(pieces[number].text[:CONSENT_WORDS_WITHIN]))
    ]
    return {
        **walked,
        "consentCovers": bool(walked.get("consentCovers") or covering),
        "coveringFrames": covering,
        "consentChars": walked["consentChars"] + sum(len(" ".join(text.split())) for text in consent_texts),
        "hasPasswordField": any(each["hasPasswordField"] for each in (walked, *framed)),
        "loginFormChars": max(each["loginFormChars"] for each in (walked, *framed)),
        "inputs": sum(each["inputs"] for each in (walked, *framed)),
        "hasUserField": any(each["hasUserField"] for each in (walked, *framed)),
        "asksForOldPassword": any(each["asksForOldPassword"] for each in (walked, *framed)),
        "largeImages": sum(each["largeImages"] for each in (walked, *framed)),
        "drawings": sum(each["drawings"] for each in (walked, *framed)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Visible and hidden text of a frame, with its boxes."""

    text: str
    hidden: str
    facts: Mapping[str, Any]
    frame_text: FrameText | None


async def _insert_frame_texts(
    view: FrameView, walked: Mapping[str, Any], *, depth: int
) -> tuple[str, str, Mapping[int, _Frame]]:
    """Return the text with the frames inserted, all hidden text, and the frames by number."""
    text, hidden = str(walked["text"]), [str(piece) for piece in walked["hidden"]]
    pieces: dict[int, _Frame] = {}
    if _MARK in text and depth <= _FRAME_DEPTH:
        numbers = {place: number for number, place in enumerate(walked["frames"])}
        numbered_children = [(numbers[place], child) for place, child in await view.children() if place in numbers]
        for number, child in numbered_children[:MAX_FRAMES]:
            inner = await _read_frame(child, depth)
            if inner is not None:
                pieces[number] = inner
                hidden.append(inner.hidden)
    whole = _FRAME_MARKER.sub(lambda match: pieces[int(match[1])].text if int(match[1]) in pieces else "", text)
    return whole, "\n".join(piece for piece in hidden if piece), pieces


def _append_alternatives(hidden: str, alternatives: Sequence[object]) -> str:
    """Append a section with the alternative texts of images to the hidden text."""
    if not alternatives:
        return hidden
    section = "\n".join([ALT_TEXT_HEADING, *(f"- {text}" for text in alternatives)])
    return f"{hidden}\n\n{section}" if hidden else section


async def _read_frame(child: FrameView, depth: int) -> _Frame | None:
    """Return the text of a frame. None if the frame does not respond, so that one frame cannot block the page."""
    try:
        async with asyncio.timeout(_FRAME_S):
            walked = await _run_walker(child, 2000)
            text, hidden, pieces = await _insert_frame_texts(child, walked, depth=depth + 1)
            return _Frame(
                text=text, hidden=hidden, facts=_facts(walked, pieces), frame_text=_frame_text(walked, pieces)
            )
    except (TimeoutError, FrameLost):
        return None


def _frame_text(walked: Mapping[str, Any], frames: Mapping[int, _Frame]) -> FrameText | None:
    """Return the boxes of a frame's text in its document, or None if its viewport is unknown."""
    if not walked.get("view"):
        return None
    left, top, width, height = walked["view"]
    return FrameText(pieces=_places(walked, frames), view=Viewport(left=left, top=top, width=width, height=height))


def _places(walked: Mapping[str, Any], frames: Mapping[int, _Frame]) -> tuple[Piece, ...]:
    """Return the boxes of a document's text and of its frames, in pixels of that document."""
    framed = {number: frame.frame_text for number, frame in frames.items() if frame.frame_text is not None}
    return insert_frames(json.loads(walked.get("places") or "[]"), framed)


class FrameLost(Exception):
    """A document was closed or cannot be read. Raised by FrameView implementations."""


async def _run_walker(view: FrameView, budget_ms: int) -> Mapping[str, Any]:
    limits = {
        "mark": _MARK,
        "elements": 400_000,
        "chars": MAX_TEXT_CHARS,
        "ms": budget_ms,
        "links": 5000,
        "frames": MAX_FRAMES,
        "hosts": MAX_HOSTS,
        "hitTests": 4000,
        "places": MAX_PLACES,
        "probes": MAX_PROBES,
        "covered": MAX_COVERED,
        "consent": {"names": CONSENT_NAMES, "words": CONSENT_WORDS, "within": CONSENT_WORDS_WITHIN},
    }
    walked: Mapping[str, Any] = await view.run(script("visible_text"), limits)
    return walked


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
