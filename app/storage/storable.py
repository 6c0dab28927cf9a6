"""What a text column of PostgreSQL, and a strict JSON reader, can take."""

from __future__ import annotations


def storable(text: str) -> str:
    """``text`` without NUL, each lone surrogate replaced by a question mark."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
