"""The items of a large JSON list, one at a time, so that memory holds one item and not the file.

A published split is one list of gigabytes. Where an item ends is found by its brackets, without decoding it, and
then each is decoded by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from judges.suites.errors import DataMissing, DataUnreadable

MAX_ITEM_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 64
CHUNK_BYTES = 1 << 20
_CLOSERS = {ord("["): ord("]"), ord("{"): ord("}")}
# Up to the next bracket that stands outside of a string, or to a string that is not whole yet. Groups are atomic and
# not repeated possessively, which Python gets wrong before 3.11.5 (gh-106052).
_RUN = re.compile(rb'(?>(?:[^"\[\]{}]++|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)")*)', re.DOTALL)


def read_items(file: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Any]:
    """Every item of a list of objects or lists, read ``chunk_bytes`` at a time. Blocks.

    Raises:
        DataMissing: there is no such file.
        DataUnreadable: it is no such list, or not well-formed; names the item.
    """
    try:
        with file.open("rb") as source:
            for number, text in enumerate(_Items(source, file.name, chunk_bytes)):
                try:
                    item = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise DataUnreadable(file.name, f"item {number} is not well-formed JSON: {error}") from error
                del text  # as large as the item itself, which is in use for a while
                yield item
    except FileNotFoundError as error:
        raise DataMissing(f"{file} does not exist") from error
    except OSError as error:
        raise DataUnreadable(str(file), f"cannot be read: {error.strerror}") from error


class _Items:
    """Splits a list into the bytes of its items."""

    def __init__(self, source: BinaryIO, name: str, chunk_bytes: int) -> None:
        self._source = source
        self._name = name
        self._data = b""
        self._at = 0
        self._chunk_bytes = self._next_chunk = chunk_bytes

    def __iter__(self) -> Iterator[bytes]:
        if self._bracket(b"") != ord("["):
            raise self._error("must be a JSON list")
        between = b""
        while (opened := self._bracket(between)) != ord("]"):
            if opened not in _CLOSERS:
                raise self._error("is not well-formed JSON: a bracket that closes nothing")
            # Everything before this item is done with.
            self._data, self._at = self._data[self._at - 1 :], 1
            self._skip_item(opened)
            yield self._data[: self._at]
            self._data, self._at, self._next_chunk = self._data[self._at :], 0, self._chunk_bytes
            between = b","
        if self._rest().strip():
            raise self._error("has more than one JSON value")

    def _skip_item(self, opened: int) -> None:
        waiting = [_CLOSERS[opened]]
        while waiting:
            found = self._next_bracket()[1]
            if found in _CLOSERS:
                waiting.append(_CLOSERS[found])
                if len(waiting) > MAX_DEPTH:
                    raise self._error(f"is nested more than {MAX_DEPTH} deep")
            elif found != waiting.pop():
                raise self._error("is not well-formed JSON: brackets that do not match")

    def _bracket(self, before: bytes) -> int:
        """The next bracket between items, where nothing but ``before`` and white space may stand."""
        text, found = self._next_bracket()
        ends = found == ord("]") and not text.strip()
        if text.strip() != before and not ends:
            raise self._error("must be a JSON list of objects or lists, with commas between")
        return found

    def _next_bracket(self) -> tuple[bytes, int]:
        """What stands before the next bracket, and the bracket, which is passed."""
        start = self._at
        while True:
            run = _RUN.match(self._data, self._at)
            self._at = self._at if run is None else run.end()
            if self._at < len(self._data) and self._data[self._at] != ord('"'):
                self._at += 1
                return self._data[start : self._at - 1], self._data[self._at - 1]
            self._more()

    def _more(self) -> None:
        """Read on, more each time: a long string is looked at from its beginning again."""
        if len(self._data) > MAX_ITEM_BYTES:
            raise self._error(f"has an item of more than {MAX_ITEM_BYTES} bytes")
        chunk = self._source.read(self._next_chunk)
        if not chunk:
            raise self._error("is not well-formed JSON: it ends too early")
        self._next_chunk = min(2 * self._next_chunk, MAX_ITEM_BYTES)
        self._data += chunk

    def _rest(self) -> bytes:
        return self._data[self._at :] + self._source.read(self._chunk_bytes)

    def _error(self, problem: str) -> DataUnreadable:
        return DataUnreadable(self._name, problem)
