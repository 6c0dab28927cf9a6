"""Detection of browsers that ran without a sandbox, from a process log in JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable

STARTED = "browser_started"


def browsers_sandboxed(log_lines: Iterable[str]) -> bool | None:
    """Return False if any browser started without a sandbox, None if no browser was started."""
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
