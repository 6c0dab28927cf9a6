"""Parser for durations: 90m, 12h, 30d, 2w."""

from __future__ import annotations

import re
from datetime import timedelta

from app.console.errors import WrongUsage

_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(text: str, *, option: str) -> timedelta:
    """Parse the value of ``option``.

    Raises:
        WrongUsage: The value is not a duration.
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", text.strip().lower())
    if match is None:
        raise WrongUsage(f"{option} {text!r}: use a number followed by m, h, d or w, for example 30d")
    return timedelta(seconds=int(match[1]) * _UNITS_S[match[2]])
