from __future__ import annotations

from datetime import timedelta

import pytest

from app.console.durations import duration
from app.console.errors import WrongUsage


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90m", timedelta(minutes=90)),
        ("12h", timedelta(hours=12)),
        (" 30D ", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_duration_is_a_number_and_a_unit(text: str, span: timedelta):
    assert duration(text, option="--older-than") == span


@pytest.mark.parametrize("text", ["", "soon", "-1d", "1.5h", "30", "9999999d", "1d2h"])
def test_invalid_duration_is_a_usage_error_of_the_option(text: str):
    with pytest.raises(WrongUsage, match="--older-than"):
        duration(text, option="--older-than")
