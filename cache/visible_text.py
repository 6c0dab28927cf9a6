"""What a person would read on a rendered page: runs the walker in every frame and puts the pieces together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cache.in_page import script

MAX_TEXT_CHARS = 24_000_000
MAX_HIDDEN_CHARS = 200_000
MAX_FRAMES = 20
_FRAME_DEPTH = 3
_FRAME_S = 5.0
_MARK = "\ue000"  # private use: taken out of page text before it means anything
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")


class FrameView(Protocol):
    """A document in a rendered page, as the walker needs it."""

    async def run(self, function: str, argument: object) -> Any:
        """The value of a function, called in a world of its own in this document."""

    async def children(self) -> Sequence[tuple[int, FrameView]]:
        """Inner frames with their place in the parent's ``__assayFrames``; -1 for one that is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleText:
    """What is read and seen. ``hidden`` is in the document but cannot be seen; ``facts`` are the main document's."""

    title: str
    text: str
    hidden: str
    links: tuple[tuple[str, str], ...]
    headlines: tuple[str, ...]
    facts: Mapping[str, Any]
    truncated: bool


async def read_visible_text(main: FrameView, *, budget_ms: int = 8000) -> VisibleText:
    """The visible text of a page with its frames, headings as ``#``, lists as ``-``, table rows with ``|``."""
    found = await _run_walker(main, budget_ms)
    text, hidden = await _with_frames(main, found, depth=1)
    return VisibleText(
        title=str(found["title"]),
        text=text[:MAX_TEXT_CHARS].strip(),
        hidden=hidden[:MAX_HIDDEN_CHARS],
        links=tuple(dict.fromkeys((str(label), str(target)) for label, target in found["links"])),
        headlines=tuple(str(headline) for headline in found["headlines"]),
        facts=found,
        truncated=bool(found["truncated"]) or len(text) > MAX_TEXT_CHARS,
    )


async def _with_frames(view: FrameView, found: Mapping[str, Any], *, depth: int) -> tuple[str, str]:
    """The text of a document with the texts of its frames in their places, and everything hidden."""
    text, hidden = str(found["text"]), [str(piece) for piece in found["hidden"]]
    pieces: dict[int, str] = {}
    if _MARK in text and depth <= _FRAME_DEPTH:
        for place, child in (await view.children())[:MAX_FRAMES]:
            inner = await _read_frame(child, depth) if place >= 0 else None
            if inner is not None:
                pieces[place] = inner[0]
                hidden.append(inner[1])
    shown = _MARKED.sub(lambda match: pieces.get(int(match[1]), ""), text)
    return shown, "\n".join(piece for piece in hidden if piece)


async def _read_frame(child: FrameView, depth: int) -> tuple[str, str] | None:
    """A frame's text, or None where it does not answer: one frame must not cost the page."""
    try:
        async with asyncio.timeout(_FRAME_S):
            return await _with_frames(child, await _run_walker(child, 2000), depth=depth + 1)
    except (TimeoutError, FrameLost):
        return None


class FrameLost(Exception):
    """A document went away or cannot be read. Raised by FrameView implementations."""


async def _run_walker(view: FrameView, budget_ms: int) -> Mapping[str, Any]:
    limits = {
        "mark": _MARK,
        "elements": 400_000,
        "chars": MAX_TEXT_CHARS,
        "ms": budget_ms,
        "links": 5000,
        "frames": MAX_FRAMES,
        "hitTests": 4000,
    }
    found: Mapping[str, Any] = await view.run(script("visible_text"), limits)
    return found
