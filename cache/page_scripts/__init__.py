"""The scripts that run inside a page: each one JavaScript function, run where the page's own scripts cannot reach."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r"/\* include (\w+) \*/")


@cache
def script(name: str) -> str:
    """The text of ``<name>.js``; a comment that says ``include other`` becomes that function, in brackets."""
    text = (Path(__file__).parent / f"{name}.js").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: f"(\n{script(found[1])})", text)
