"""The bundles that a result file went into, noted at the end of that very file, and taken off again to the byte.

No bundle's hash covers the note: a bundle holds the file as it was without it.
"""

from __future__ import annotations

import json
from typing import Any, Final

_MARK: Final = b',\n  "bundles": '
_END: Final = b"\n}\n"
_FIELDS: Final = {"root_sha256", "content", "created_at"}


def without_roots(file: bytes) -> bytes:
    """A result file as it was before any bundle was noted in it."""
    return _split(file)[0]


def with_root(file: bytes, root: dict[str, Any]) -> bytes:
    """A result file with one more bundle noted in it; as it is when that one is, or when it is not as we write them."""
    before, known = _split(file)
    if not before.endswith(_END) or root["root_sha256"] in [each["root_sha256"] for each in known]:
        return file
    return before.removesuffix(_END) + _MARK + json.dumps([*known, root]).encode() + _END


def _split(file: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """The file without its note, and what is noted. In no text of a JSON file can there be a line like the mark."""
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
