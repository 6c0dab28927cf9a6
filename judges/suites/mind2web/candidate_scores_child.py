"""Sandboxed child process that converts a pickle of candidate scores to Parquet.

It is started by path with the digest of its input as argument. It limits its own resources, reads the pickle from
standard input and writes Parquet to standard output, which must be a file. It writes one line of JSON, the report, to
standard error. It imports nothing from this project. The unpickler resolves no global: the few names that scores need
are mapped to functions of this module, and all others are rejected.
"""

from __future__ import annotations

import ctypes
import json
import math
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

MEMORY_BYTES = 6 * 1024**3
"""The published file needs about 2 GB in memory."""
CPU_S = 600
MAX_OUTPUT_BYTES = 4 * 1024**3
MAX_ENTRIES = 100_000_000
SAMPLES_AT_ONCE = 256
FORMAT = "1"
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000
_PARTS = ("scores", "ranks")
_NUMBERS = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q"} | {
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
}


class PickleRejected(Exception):
    """The pickle was rejected. The message gives the reason."""


class NumberType:
    """Replacement for a numpy dtype: struct code of a number and its byte order."""

    def __init__(self, code: object, *flags: object) -> None:
        name = str(code).lstrip("<>=|")
        if name not in _NUMBERS:
            raise PickleRejected(f"unsupported numpy type {str(code)[:20]!r}")
        self.code = _NUMBERS[name]
        self.order = "<"

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self.order = ">" if state[1] == ">" else "<"
            return
        raise PickleRejected("unknown format of a numpy type")


def number(kind: object, data: object = b"") -> float | int:
    """Replacement for a numpy scalar."""
    if not isinstance(kind, NumberType) or not isinstance(data, bytes):
        raise PickleRejected("a numpy value is not a number")
    try:
        [value] = struct.unpack(kind.order + kind.code, data)
    except struct.error as error:
        raise PickleRejected(f"malformed numpy value: {error}") from error
    return float(value) if kind.code in "efd" else int(value)


def mapping(*factory: object) -> dict[Any, Any]:
    """Replacement for dict and defaultdict; the default factory is ignored."""
    return {}


def latin1(text: object, encoding: object = "latin1") -> bytes:
    """Replacement for the function that older pickle protocols use to encode bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise PickleRejected("bytes in an unknown encoding")
    return text.encode("latin-1")


_NAMES: Mapping[tuple[str, str], Callable[..., Any] | str] = {
    ("collections", "defaultdict"): mapping,
    ("builtins", "dict"): mapping,
    ("__builtin__", "dict"): mapping,
    # Default factories of a defaultdict. They are never called.
    ("builtins", "float"): "float",
    ("builtins", "int"): "int",
    ("__builtin__", "float"): "float",
    ("__builtin__", "int"): "int",
    ("_codecs", "encode"): latin1,
    ("numpy", "dtype"): NumberType,
    ("numpy.core.multiarray", "scalar"): number,
    ("numpy._core.multiarray", "scalar"): number,
}


class ScoresUnpickler(pickle.Unpickler):
    """Unpickler that accepts only the names in ``_NAMES``."""

    def find_class(self, module: str, name: str) -> Any:
        class_ = _NAMES.get((module, name))
        if class_ is None:
            raise PickleRejected(f"it references {module[:60]}.{name[:60]}, which is not allowed in scores")
        return class_

    def persistent_load(self, pid: Any) -> Any:
        raise PickleRejected("external references are not allowed")


def confine() -> None:
    """Limit memory, CPU time and output, drop the network if permitted, and exit together with the parent process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if hasattr(libc, "unshare"):
        libc.unshare(_CLONE_NEWNET)  # needs a privilege; a second barrier, since nothing here opens a connection


def read_scores(source: BinaryIO) -> dict[str, dict[str, Any]]:
    """Return the two maps by name. Their content is not checked yet.

    Raises:
        PickleRejected: the input is not a pickle, or not a pickle of scores.
    """
    try:
        whole = ScoresUnpickler(source).load()
    except PickleRejected:
        raise
    except MemoryError as error:
        raise PickleRejected("it needs more memory than the limit for scores") from error
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise PickleRejected(f"it is not a valid pickle of scores: {str(error)[:200]}") from error
    except (RecursionError, OverflowError, struct.error) as error:
        raise PickleRejected(f"it is a malformed pickle: {str(error)[:200]}") from error
    if not isinstance(whole, dict) or not all(isinstance(whole.get(part), dict) for part in _PARTS):
        raise PickleRejected('it is not a dict with the dicts "scores" and "ranks"')
    return {part: whole[part] for part in _PARTS}


def samples(maps: dict[str, dict[str, Any]]) -> Iterator[tuple[str, list[str], list[float | None], list[int]]]:
    """Yield each step's sample id with the ids, scores and ranks of its candidates.

    Raises:
        PickleRejected: a key is not a string, a value is not a finite number, or there are more than ``MAX_ENTRIES``
            entries.
    """
    scores, ranks, entries = maps["scores"], maps["ranks"], 0
    for name, by_id in ranks.items():
        if not isinstance(name, str) or not isinstance(by_id, dict):
            raise PickleRejected("the ranks must be a dict of dicts with string keys")
        own = scores.get(name, {})
        if not isinstance(own, dict):
            raise PickleRejected(f"the scores of {name[:80]!r} are not a dict")
        entries += len(by_id)
        if entries > MAX_ENTRIES:
            raise PickleRejected(f"it has more than {MAX_ENTRIES} entries")
        yield (
            name,
            [_checked_id(id, name) for id in by_id],
            [_checked_score(own.get(id), name) for id in by_id],
            [_checked_rank(rank, name) for rank in by_id.values()],
        )


def _checked_id(id: Any, name: str) -> str:
    if not isinstance(id, str):
        raise PickleRejected(f"a candidate id of {name[:80]!r} is not a string")
    return id


def _checked_score(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise PickleRejected(f"a score of {name[:80]!r} is not a finite number")
    return float(value)


def _checked_rank(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise PickleRejected(f"a rank of {name[:80]!r} is not an integer >= 0")
    return value


def write(maps: dict[str, dict[str, Any]], out: BinaryIO, *, sha256: str) -> dict[str, int]:
    """Write Parquet with one row per step. Returns the number of steps and candidates."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    schema = pa.schema(
        [
            ("sample_id", pa.string()),
            ("ids", pa.list_(pa.string())),
            ("scores", pa.list_(pa.float64())),
            ("ranks", pa.list_(pa.int32())),
        ],
        metadata={"scores_format": FORMAT, "source_sha256": sha256},
    )
    steps = candidates = 0
    rows: list[tuple[Any, ...]] = []
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:

        def flush() -> None:
            columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
            arrays = [pa.array(column, type=kind.type) for column, kind in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            rows.clear()

        for row in samples(maps):
            rows.append(row)
            steps, candidates = steps + 1, candidates + len(row[1])
            if len(rows) == SAMPLES_AT_ONCE:
                flush()
        if rows or not steps:
            flush()
    return {"steps": steps, "candidates": candidates}


def main() -> int:
    confine()
    try:
        report: dict[str, Any] = write(read_scores(sys.stdin.buffer), sys.stdout.buffer, sha256=sys.argv[1])
        sys.stdout.buffer.flush()
    except PickleRejected as error:
        report = {"refused": str(error)}
    except MemoryError:
        report = {"refused": "it needs more memory than the limit for scores"}
    sys.stderr.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
