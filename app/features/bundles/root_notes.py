"""Root hashes of bundles at the end of a result file, which can be removed again byte for byte.

A bundle contains the result file without them, because it cannot contain its own hash.
"""

from __future__ import annotations

import json
from typing import Any, Final

_MARK: Final = b',\n  "bundles": '
_END: Final = b"\n}\n"
_FIELDS: Final = {"root_sha256", "content", "created_at"}


def without_roots(file: bytes) -> bytes:
    """Return a result file without recorded bundles, byte for byte as it was first written."""
    return _split(file)[0]


def with_root(file: bytes, root: dict[str, Any]) -> bytes:
    """Return a result file with one more bundle recorded.

    Unchanged if it is already recorded, or if the file layout is unknown.
    """
    before, known = _split(file)
    if not before.endswith(_END) or root["root_sha256"] in [each["root_sha256"] for each in known]:
        return file
    return before.removesuffix(_END) + _MARK + json.dumps([*known, root]).encode() + _END


def _split(file: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """Return the file without the recorded bundles, and the bundles.

    The marker cannot occur inside a JSON string because of its line break.
    """
    before, mark, rest = file.rpartition(_MARK)
    note = rest.removesuffix(_END)
    if not mark or note == rest or b"\n" in note:
        return file, []
    try:
        known = json.loads(note)
    except ValueError:
        return file, []
    if (
        not isinstance(known, list)
        or not known
        or not all(isinstance(each, dict) and each.keys() == _FIELDS for each in known)
    ):
        return file, []
    return before + _END, known
