"""The program that turns a pickle of candidate scores into Parquet, run as a child process because it is a pickle.

Started by path with the digest of its input as argument: it limits itself, reads the pickle from standard input, and
writes Parquet to standard output, which must be a file. One line of JSON on standard error says how it went. It imports
nothing of this project. Nothing that a pickle can name is looked up: the few names that scores need stand for
functions of our own, and all others are refused.
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
"""The published file unpacks to about two gigabytes."""
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


class Refused(Exception):
    """The pickle is not read any further; the message says why."""


class NumberType:
    """What is left of a numpy dtype: the code of a number and its byte order."""

    def __init__(self, code: object, *flags: object) -> None:
        name = str(code).lstrip("<>=|")
        if name not in _NUMBERS:
            raise Refused(f"it has a numpy value of type {str(code)[:20]!r}")
        self.code = _NUMBERS[name]
        self.order = "<"

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self.order = ">" if state[1] == ">" else "<"
            return
        raise Refused("it has a numpy type in a form that is not known")


def number(kind: object, data: object = b"") -> float | int:
    """A numpy scalar."""
    if not isinstance(kind, NumberType) or not isinstance(data, bytes):
        raise Refused("it has a numpy value that is no number")
    try:
        [value] = struct.unpack(kind.order + kind.code, data)
    except struct.error as error:
        raise Refused(f"it has a numpy value that is damaged: {error}") from error
    return float(value) if kind.code in "efd" else int(value)


def mapping(*factory: object) -> dict[Any, Any]:
    """A dict, and a defaultdict without what it would be filled with."""
    return {}


def latin1(text: object, encoding: object = "latin1") -> bytes:
    """How older protocols write the bytes of a number."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise Refused("it has bytes in an encoding that is not known")
    return text.encode("latin-1")


_NAMES: Mapping[tuple[str, str], Callable[..., Any] | str] = {
    ("collections", "defaultdict"): mapping,
    ("builtins", "dict"): mapping,
    ("__builtin__", "dict"): mapping,
    # As what a defaultdict would be filled with, and never called.
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
    """Knows the names above and no other."""

    def find_class(self, module: str, name: str) -> Any:
        found = _NAMES.get((module, name))
        if found is None:
            raise Refused(f"it names {module[:60]}.{name[:60]}, which scores have no use for")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("it has a reference to something outside of it")


def confine() -> None:
    """Bound memory, processor time and output, drop the network where that is allowed, and die with the parent."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if hasattr(libc, "unshare"):
        libc.unshare(_CLONE_NEWNET)  # needs a privilege; there is nothing here that could dial anyway


def read_scores(source: BinaryIO) -> dict[str, dict[str, Any]]:
    """The two maps, by their names, not yet looked into.

    Raises:
        Refused: it is not a pickle, or one of something else.
    """
    try:
        whole = ScoresUnpickler(source).load()
    except Refused:
        raise
    except MemoryError as error:
        raise Refused("it needs more memory than scores do") from error
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise Refused(f"it is no readable pickle of scores: {str(error)[:200]}") from error
    except (RecursionError, OverflowError, struct.error) as error:
        raise Refused(f"it is a pickle that does not end well: {str(error)[:200]}") from error
    if not isinstance(whole, dict) or not all(isinstance(whole.get(part), dict) for part in _PARTS):
        raise Refused('it is no dict with the dicts "scores" and "ranks"')
    return {part: whole[part] for part in _PARTS}


def samples(maps: dict[str, dict[str, Any]]) -> Iterator[tuple[str, list[str], list[float | None], list[int]]]:
    """Each step's name with the ids, scores and ranks of its candidates.

    Raises:
        Refused: a key is no text, a value no finite number, or there are more of them than any ranker makes.
    """
    scores, ranks, entries = maps["scores"], maps["ranks"], 0
    for name, by_id in ranks.items():
        if not isinstance(name, str) or not isinstance(by_id, dict):
            raise Refused("it has ranks that are no dict of dicts by text")
        own = scores.get(name, {})
        if not isinstance(own, dict):
            raise Refused(f"it has scores of {name[:80]!r} that are no dict")
        entries += len(by_id)
        if entries > MAX_ENTRIES:
            raise Refused(f"it has more than {MAX_ENTRIES} entries")
        yield (
            name,
            [_text(id, name) for id in by_id],
            [_score(own.get(id), name) for id in by_id],
            [_rank(rank, name) for rank in by_id.values()],
        )


def _text(id: Any, name: str) -> str:
    if not isinstance(id, str):
        raise Refused(f"it has a candidate of {name[:80]!r} whose id is no text")
    return id


def _score(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"it has a score of {name[:80]!r} that is no finite number")
    return float(value)


def _rank(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise Refused(f"it has a rank of {name[:80]!r} that is no whole number from 0")
    return value


def write(maps: dict[str, dict[str, Any]], out: BinaryIO, *, sha256: str) -> dict[str, int]:
    """Parquet with a row for each step. Returns how much there was."""
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
    except Refused as why:
        report = {"refused": str(why)}
    except MemoryError:
        report = {"refused": "it needs more memory than scores do"}
    sys.stderr.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
