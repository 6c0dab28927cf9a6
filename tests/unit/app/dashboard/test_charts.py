"""Bars of scores and shares."""

from __future__ import annotations

import re

from app.dashboard.charts import interval_bar, share_bar


def test_mark_of_a_score_is_inside_its_interval():
    bar = interval_bar({"value": None, "low": 0.5, "high": 0.75}, {"low": 0.25, "high": 1.0})
    assert 'aria-label="95 % interval 0.25 to 1.00"' in bar
    places = {name: (float(x), float(width)) for name, x, width in re.findall(_RECT, bar)}
    assert places == {"bar-track": (0, 120), "bar-range": (30, 90), "bar-mark": (58.5, 33)}


def test_open_score_without_an_interval_has_no_mark():
    assert "bar-mark" not in interval_bar({"value": None, "low": 0.5, "high": 0.75})
    assert "bar-mark" in interval_bar({"value": 0.5, "low": 0.5, "high": 0.5})


def test_shares_fill_the_bar_and_are_named():
    bar = share_bar([("<supported>", "passed", 3), ("gone", "skipped", 1)])
    assert 'aria-label="&lt;supported&gt;: 3, gone: 1"' in bar
    assert re.findall(_RECT, bar) == [("share-passed", "0.0", "449.0"), ("share-skipped", "450.0", "149.0")]
    assert share_bar([("supported", "passed", 0)]) == ""


_RECT = r'class="([\w-]+)" x="([\d.]+)" y="\d+" width="([\d.]+)"'
