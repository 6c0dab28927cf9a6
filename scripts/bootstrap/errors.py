"""Why set-up stops, in words for the person in front of it.

SetupFailed
"""

from __future__ import annotations

from pathlib import Path


class SetupFailed(Exception):
    """A step could not be done: ``what`` is missing, ``remedy`` is what to type, ``log`` holds the details."""

    def __init__(self, what: str, *, remedy: str, log: Path | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.log = log
