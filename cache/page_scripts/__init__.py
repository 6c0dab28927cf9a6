"""JavaScript functions that run inside a page, in an isolated world that the page's own scripts cannot access."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r"/\* include (\w+) \*/")


@cache
def script(name: str) -> str:
    """Return the text of ``<name>.js``. The comment ``include other`` is replaced by that function, in parentheses."""
    text = (Path(__file__).parent / f"{name}.js").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: f"(\n{script(match[1])})", text)
