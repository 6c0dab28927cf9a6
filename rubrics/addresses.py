"""Unique keys for the nodes of a stored tree, for URLs and HTML attributes.

A key is the id of the node. Because public judge scripts may give two nodes the same id, later ones get a suffix.
"""

from __future__ import annotations

import re

_UNADDRESSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that do not survive a round trip through an HTML attribute or a URL."""


class NodeKeys:
    """Generator of keys for the nodes of one tree. Pass the nodes in tree order: parents before children."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def key(self, id: str) -> str:
        """Return ``id`` for the first node with this id, then ``id~2``, ``id~3``..."""
        plain = id if id.isprintable() else _UNADDRESSABLE.sub("\ufffd", id)
        self._seen[plain] = self._seen.get(plain, 0) + 1
        return plain if self._seen[plain] == 1 else f"{plain}~{self._seen[plain]}"
