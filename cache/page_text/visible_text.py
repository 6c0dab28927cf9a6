"""Visible text of a rendered page: runs the walker script in every frame and combines the results."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cache.backends.plain_html import CONSENT_NAMES, CONSENT_WORDS, CONSENT_WORDS_WITHIN
from cache.capture import ALT_TEXT_HEADING
from cache.page_scripts import script
from cache.page_text.text_boxes import FrameText, Piece, Viewport, insert_frames

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
