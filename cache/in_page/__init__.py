"""The scripts that run inside a page: each one JavaScript function, run where the page's own scripts cannot reach."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def script(name: str) -> str:
    """The text of ``<name>.js``."""
    return (Path(__file__).parent / f"{name}.js").read_text(encoding="utf-8")
