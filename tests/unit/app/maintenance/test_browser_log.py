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
        ([INSIDE, OUTSIDE], False),
        (['{"event": "x", "why": "browser started"}', "browser started, cut off {"], None),
    ],
)
def test_one_browser_outside_its_sandbox_is_reported(lines: list[str], expected: bool | None) -> None:
    assert browsers_sandboxed(lines) is expected
