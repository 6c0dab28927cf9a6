"""A name for every node of a stored tree. Pure.

Public judge scripts may give two nodes the same id. A key is the id where that is unique and can stand in an address.
"""

from __future__ import annotations

import re

_UNADDRESSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""What does not come back from an HTML attribute or an address as it was."""


class Addresses:
    """Gives keys to the nodes of one tree, which must be named in its order: parents before children."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def key(self, id: str) -> str:
        """``id`` for the first node that has it, then ``id~2`` and so on."""
        plain = _UNADDRESSABLE.sub("\ufffd", id)
        self._seen[plain] = self._seen.get(plain, 0) + 1
        return plain if self._seen[plain] == 1 else f"{plain}~{self._seen[plain]}"
