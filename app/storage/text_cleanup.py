"""Text cleanup for PostgreSQL text columns and strict JSON parsers."""

from __future__ import annotations


def storable_text(text: str) -> str:
    """Return ``text`` without NUL characters, and with each lone surrogate replaced by a question mark."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
