"""Grouping of more rows than fit into memory, with temporary files."""

from __future__ import annotations

import hashlib
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

Row: TypeAlias = tuple[bytes, bytes]
"""Key and content of a row."""

MAX_BYTES_IN_MEMORY: Final = 64 * 1024 * 1024
PARTS: Final = 64
_HEADER = struct.Struct(">II")
_OVERHEAD: Final = 150
"""Bytes that Python needs for a row besides its content."""


def row_key(*values: object) -> bytes:
    """Return a key of 16 bytes, which is equal for equal values."""
    return hashlib.blake2b(repr(values).encode("utf-8", "replace"), digest_size=16).digest()


def in_batches(rows: Iterable[Row], *, max_bytes: int = MAX_BYTES_IN_MEMORY) -> Iterator[list[Row]]:
    """Yield all rows in batches, so that rows with the same key are in one batch. Blocks on the disk.

    Up to ``max_bytes`` of rows are one batch in the order of ``rows``. More rows are written to ``PARTS`` temporary
    files by key, and each file is a batch. A batch then has a 64th of the rows, unless many have the same key.
    """
    held: list[Row] = []
    size = 0
    remaining = iter(rows)
    for row in remaining:
        held.append(row)
        size += len(row[1]) + _OVERHEAD
        if size > max_bytes:
            break
    else:
        if held:
            yield held
        return
    with tempfile.TemporaryDirectory(prefix="assay-labels-") as folder:
        paths = [Path(folder) / str(part) for part in range(PARTS)]
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("wb")) for path in paths]
            _write(held, files)
            held.clear()
            _write(remaining, files)
        for path in paths:
            batch = list(_read(path))
            path.unlink()
            if batch:
                yield batch


def _write(rows: Iterable[Row], files: Sequence[BinaryIO]) -> None:
    for key, content in rows:
        file = files[hashlib.blake2b(key, digest_size=1).digest()[0] % PARTS]
        file.write(_HEADER.pack(len(key), len(content)) + key + content)


def _read(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        while header := file.read(_HEADER.size):
            key_size, size = _HEADER.unpack(header)
            yield file.read(key_size), file.read(size)
