"""Serialization of captures to JSON for files and database columns."""

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
    """Return the capture as JSON values, with ``record_version``. ``captured_at`` is ISO 8601 with UTC offset."""
    fields: dict[str, Any] = _CAPTURES.dump_python(capture, mode="json")
    return {"record_version": RECORD_VERSION, **fields}


def capture_to_bytes(capture: Capture) -> bytes:
    """Return the capture as the bytes of a record file."""
    return json.dumps(capture_to_json(capture), ensure_ascii=False, indent=1).encode("utf-8", "replace")


def capture_from_bytes(data: bytes) -> Capture:
    """Parse a record that ``capture_to_bytes`` wrote.

    Raises:
        IndexFailed: the record is damaged, or has another version or structure.
    """
    try:
        record = json.loads(data)
    except ValueError as damage:
        raise IndexFailed(f"damaged capture record: {damage}") from damage
    if not isinstance(record, dict):
        raise IndexFailed("damaged capture record: not a JSON object")
    return capture_from_json(record)


def capture_from_json(record: Mapping[str, Any]) -> Capture:
    """Parse a record that ``capture_to_json`` returned.

    Raises:
        IndexFailed: the record has another version or structure.
    """
    version = record.get("record_version")
    if version != RECORD_VERSION:
        raise IndexFailed(f"unsupported capture record version {version!r}: this program reads {RECORD_VERSION}")
    try:
        return _CAPTURES.validate_python({name: value for name, value in record.items() if name != "record_version"})
    except ValidationError as wrong:
        raise IndexFailed(f"damaged capture record: {wrong}") from wrong
