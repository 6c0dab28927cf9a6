"""Visible text of a page, assembled from its frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cache.page_text.visible_text import FrameLost, FrameView, read_visible_text

MARK = "\ue000"


class FakeFrame:
    """Frame that returns a given text from the page script. ``frames`` are by position."""

    def __init__(self, text: str, frames: dict[int, FrameView] | None = None, **found: Any) -> None:
        self._found = {"title": "T", "text": text, "hidden": [], "links": [], "headlines": [], "truncated": False}
        self._found |= {"frames": [f"0.{n}" for n in range(9)], "alternatives": []}
        self._found |= {
            "consentChars": 0,
            "consentFrames": [],
            "loginFormChars": 0,
            "inputs": 0,
            "largeImages": 0,
            "drawings": 0,
            "hasUserField": False,
            "asksForOldPassword": False,
        }
        self._found |= {"hasPasswordField": False}
        self._found |= found
        self._frames = frames or {}

    async def run(self, function: str, argument: object) -> Any:
        assert function.startswith("//")
        return self._found

    async def children(self) -> Sequence[tuple[str, FrameView]]:
        return [(f"0.{number}", frame) for number, frame in self._frames.items()]


class SilentFrame(FakeFrame):
    async def run(self, function: str, argument: object) -> Any:
        raise FrameLost("it went away")


def _place(number: int) -> str:
    return f"{MARK}{number}{MARK}"


async def test_texts_of_frames_are_inserted_at_their_positions() -> None:
    inner = FakeFrame(f"inner {_place(0)} end", {0: FakeFrame("innermost")})
    page = FakeFrame(f"before\n{_place(1)}\nbetween\n{_place(0)}\nafter", {0: FakeFrame("zero"), 1: inner})
    assert (await read_visible_text(page)).text == "before\ninner innermost end\nbetween\nzero\nafter"


async def test_invisible_or_lost_frame_affects_only_its_own_text() -> None:
    frames: dict[int, FrameView] = {99: FakeFrame("unseen"), 0: SilentFrame("lost")}
    visible = await read_visible_text(FakeFrame(f"a {_place(0)} b {_place(7)} c", frames))
    assert visible.text == "a  b  c"


async def test_consent_and_login_in_a_frame_are_facts_of_the_page() -> None:
    inner = FakeFrame("sign in here", hasPasswordField=True, loginFormChars=12, inputs=2)
    frames: dict[int, FrameView] = {0: FakeFrame("we  value\nyour privacy"), 1: FakeFrame(_place(0), {0: inner})}
    page = FakeFrame(f"{_place(0)} {_place(1)}", frames, consentFrames=[0, 5], consentChars=3, inputs=1)
    facts = (await read_visible_text(page)).facts
    assert (facts["consentChars"], facts["hasPasswordField"]) == (3 + len("we value your privacy"), True)
    assert (facts["loginFormChars"], facts["inputs"]) == (12, 3)
