"""Entries of the dashboard's main menu, for the core and for features."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """Entry of the main menu. Its pages pass ``name`` to the template as ``here``."""

    name: str
    path: str
    label: str
    listing: str | None = None
    """API path of a list. The entry is hidden while the list is empty."""
