"""Elements written as ``<a bnid=36929>...</a>``, the form of candidates and targets in ~ rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ROOT = re.compile(r"""\s*<[A-Za-z][\w:.-]*\s(?:[^<>]*?\s)?bnid=["']?(?P<bnid>[^\s"'<>/]+)""")


def root_id(element: str) -> str | None:
    """Return the ``bnid`` of the outermost element, quoted or not, or None.

    >>> root_id("<a bnid=36929><text bnid=36932>Fox</text></a>"), root_id('<a role="x" bnid="7"/>'), root_id("<a/>")
    ('36929', '7', None)
    """
    found = _ROOT.match(element)
    return None if found is None else found["bnid"]


def is_one_of(element: str, targets: Iterable[str]) -> bool:
    """Return whether an element is among the targets: by id, or by text if one of the two has no id."""
    own = root_id(element)
    for target in targets:
        other = root_id(target)
        if element == target if own is None or other is None else own == other:
            return True
    return False
