"""A Capture as plain JSON values and back, for whoever stores records (a folder, a database column)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cache.capture import Capture
from cache.errors import IndexFailed

RECORD_VERSION = 1

_CAPTURES: TypeAdapter[Capture] = TypeAdapter(Capture)


def capture_to_json(capture: Capture) -> dict[str, Any]:
    """The record as JSON values, its version beside the fields; ``captured_at`` in ISO 8601 with its offset."""
    fields: dict[str, Any] = _CAPTURES.dump_python(capture, mode="json")
    return {"record_version": RECORD_VERSION, **fields}


def capture_to_bytes(capture: Capture) -> bytes:
    """The record as it is stored in a file."""
    return json.dumps(capture_to_json(capture), ensure_ascii=False, indent=1).encode("utf-8", "replace")


def capture_from_bytes(data: bytes) -> Capture:
    """The Capture that ``capture_to_bytes`` wrote.

    Raises:
        IndexFailed: the record is damaged, or has another version or shape.
    """
    try:
        record = json.loads(data)
    except ValueError as damage:
        raise IndexFailed(f"damaged capture record: {damage}") from damage
    if not isinstance(record, dict):
        raise IndexFailed("damaged capture record: it is no JSON object")
    return capture_from_json(record)


def capture_from_json(record: Mapping[str, Any]) -> Capture:
    """The Capture that ``capture_to_json`` wrote.

    Raises:
        IndexFailed: the record has another version or shape.
    """
    version = record.get("record_version")
    if version != RECORD_VERSION:
        raise IndexFailed(f"capture record of version {version!r}, this program reads {RECORD_VERSION}")
    try:
        return _CAPTURES.validate_python({name: value for name, value in record.items() if name != "record_version"})
    except ValidationError as wrong:
        raise IndexFailed(f"damaged capture record: {wrong}") from wrong
