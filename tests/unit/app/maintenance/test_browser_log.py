from __future__ import annotations

import json

import pytest

from app.maintenance.doctor import browsers_sandboxed

INSIDE = json.dumps({"event": "browser started", "sandboxed": True})
OUTSIDE = json.dumps({"event": "browser started", "sandboxed": False})


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], None),
        (["assay serves at http://127.0.0.1:1", '{"event": "page_captured"}'], None),
        ([INSIDE], True),
        ([INSIDE, OUTSIDE], False),
        ([OUTSIDE, INSIDE], False),
        (['{"event": "x", "why": "browser started"}', "browser started, cut off {"], None),
    ],
    ids=["empty", "no browser", "inside", "second outside", "first outside", "only the word"],
)
def test_one_browser_outside_its_sandbox_is_reported(lines: list[str], expected: bool | None) -> None:
    assert browsers_sandboxed(lines) is expected
