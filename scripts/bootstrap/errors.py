"""Error of the set-up program."""

from __future__ import annotations

from pathlib import Path


class SetupFailed(Exception):
    """A failed set-up step. ``what`` is the cause, ``remedy`` how to fix it, ``log`` the file with details."""

    def __init__(self, what: str, *, remedy: str, log: Path | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.log = log
