"""Streaming reader for large JSON lists.

A published split is one JSON list of several gigabytes. The reader finds the end of each item by its brackets and
decodes one item at a time, so memory use depends on the largest item and not on the file.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from judges.suites.errors import DataUnreadable, SuiteError

MAX_ITEM_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 64
CHUNK_BYTES = 1 << 20
_DECODER = json.JSONDecoder()
_CLOSERS = {ord("["): ord("]"), ord("{"): ord("}")}
# Matches up to the next bracket outside of a string, or up to an incomplete string. Atomic groups replace possessive
# repetition of groups, which is broken in Python before 3.11.5 (gh-106052).
_RUN = re.compile(rb'(?>(?:[^"\[\]{}]++|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)")*)', re.DOTALL)


def read_items(file: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Any]:
    """Yield each item of a JSON list of objects or lists. Reads ``chunk_bytes`` at a time. Blocks.

    Raises:
        SuiteError: see ``item_spans``.
    """
    return (item for _, item in item_spans(file, chunk_bytes=chunk_bytes))


def read_item(file: Path, span: tuple[int, int]) -> Any:
    """Return one item by its offset and length in bytes. Blocks.

    Raises:
        SuiteError: the file does not exist, or has changed.
    """
    try:
        with file.open("rb") as source:
            source.seek(span[0])
            return json.loads(source.read(span[1]))
    except (OSError, ValueError, RecursionError) as error:
        raise SuiteError(f"{file.name} has changed: there is no item at byte {span[0]}") from error


def item_spans(file: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield offset and length in bytes of each item, and the item. Blocks.

    Raises:
        SuiteError: the file does not exist.
        DataUnreadable: the file is not such a list or not well-formed. The message names the item.
    """
    try:
        with file.open("rb") as source:
            for number, (offset, text) in enumerate(_Items(source, file.name, chunk_bytes)):
                span = (offset, len(text))
                try:
                    item = _whole_value(text.decode())
                except (ValueError, RecursionError) as error:
                    raise DataUnreadable(file.name, f"item {number} is not well-formed JSON: {error}") from error
                del text  # free the bytes before the consumer processes the item
                yield span, item
    except FileNotFoundError as error:
        raise SuiteError(f"{file} does not exist") from error
    except OSError as error:
        raise DataUnreadable(str(file), f"cannot be read: {error.strerror}") from error


def _whole_value(text: str) -> Any:
    """Return the JSON value that is the whole text. Does not search for white space around it, as ``json.loads``."""
    value, end = _DECODER.raw_decode(text)
    if end != len(text):
        raise ValueError(f"there is other text at character {end}")
    return value


class _Items:
    """Splits a JSON list into the offsets and bytes of its items."""

    def __init__(self, source: BinaryIO, name: str, chunk_bytes: int) -> None:
        self._source = source
        self._name = name
        start = source.read(len(BOM_UTF8))
        self._data = b"" if start == BOM_UTF8 else start
        self._at = 0
        self._offset = len(start) - len(self._data)
        """Offset of ``_data`` in the file."""
        self._chunk_bytes = self._next_chunk = chunk_bytes

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        if self._bracket(b"") != ord("["):
            raise self._error("must be a JSON list")
        between = b""
        while (opened := self._bracket(between)) != ord("]"):
            if opened not in _CLOSERS:
                raise self._error("is not well-formed JSON: unexpected closing bracket")
            if self._at > self._chunk_bytes:  # discard the bytes before this item
                self._offset += self._at - 1
                self._data, self._at = self._data[self._at - 1 :], 1
            start = self._at - 1
            self._skip_item(opened)
            yield self._offset + start, self._data[start : self._at]
            self._next_chunk = self._chunk_bytes
            between = b","
        if self._rest().strip():
            raise self._error("has more than one JSON value")

    def _skip_item(self, opened: int) -> None:
        expected_closers = [_CLOSERS[opened]]
        while expected_closers:
            bracket = self._next_bracket()[1]
            if bracket in _CLOSERS:
                expected_closers.append(_CLOSERS[bracket])
                if len(expected_closers) > MAX_DEPTH:
                    raise self._error(f"is nested more than {MAX_DEPTH} levels deep")
            elif bracket != expected_closers.pop():
                raise self._error("is not well-formed JSON: brackets do not match")

    def _bracket(self, before: bytes) -> int:
        """Return the next bracket between items. Only ``before`` and white space may precede it."""
        text, bracket = self._next_bracket()
        ends = bracket == ord("]") and not text.strip()
        if text.strip() != before and not ends:
            raise self._error("must be a JSON list of objects or lists, separated by commas")
        return bracket

    def _next_bracket(self) -> tuple[bytes, int]:
        """Return the text before the next bracket, and the bracket. Moves the position behind the bracket."""
        start = self._at
        while True:
            run = _RUN.match(self._data, self._at)
            self._at = self._at if run is None else run.end()
            if self._at < len(self._data) and self._data[self._at] != ord('"'):
                self._at += 1
                return self._data[start : self._at - 1], self._data[self._at - 1]
            self._more()

    def _more(self) -> None:
        """Read the next chunk.

        The chunk size doubles, because the search restarts at the beginning of an unfinished string.
        """
        if len(self._data) > MAX_ITEM_BYTES:
            raise self._error(f"has an item of more than {MAX_ITEM_BYTES} bytes")
        chunk = self._source.read(self._next_chunk)
        if not chunk:
            raise self._error("is not well-formed JSON: unexpected end of file")
        self._next_chunk = min(2 * self._next_chunk, MAX_ITEM_BYTES)
        self._data += chunk

    def _rest(self) -> bytes:
        return self._data[self._at :] + self._source.read(self._chunk_bytes)

    def _error(self, problem: str) -> DataUnreadable:
        return DataUnreadable(self._name, problem)
