"""Whether browsers ran in their sandbox, as the log of a process tells (one JSON object a line)."""

from __future__ import annotations

import json
from collections.abc import Iterable

STARTED = "browser_started"


def sandboxed(log_lines: Iterable[str]) -> bool | None:
    """False when any browser was started without its sandbox, None when none was started at all."""
    found: bool | None = None
    for line in log_lines:
        if STARTED not in line:
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == STARTED:
            found = bool(event.get("sandboxed")) and found is not False
    return found
