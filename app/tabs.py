"""Entries of the dashboard's main menu, for the core and for features."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """Entry of the main menu. Its pages pass ``name`` to the template as ``here``."""

    name: str
    path: str
    label: str
    job_kind: str | None = None
    """Kind of the jobs that the pages show. The entry is hidden until there is one."""
