"""Candidate scores on disk: conversion of the published pickle to Parquet, and lookup by step.

The conversion runs in a sandboxed child process, because unpickling untrusted data can execute code.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cache.atomic_files import atomic_path
from judges.late_libraries import pa, pq
from judges.suites.errors import DataUnreadable, SuiteError
from judges.suites.mind2web import candidate_scores_child

CONVERSION_S = 900.0
_CHILD = Path(candidate_scores_child.__file__)
_PARQUET_MAGIC = b"PAR1"
_COLUMNS = {"sample_id", "ids", "scores", "ranks"}
_MAX_REPORT_CHARS = 2_000


class ScoreTable:
    """Lookup of candidate ranks by step, in a Parquet file. Each lookup reads one row group of at most 256 steps."""

    def __init__(self, path: Path, *, name: str = "") -> None:
        """``name`` is used in error messages, for example the name of the source pickle.

        Raises:
            SuiteError: the file does not exist, or was not written by ``parquet_of``.
        """
        self.name = name or path.name
        if not path.is_file():
            raise SuiteError(f"{path} does not exist")
        try:
            self._file = pq.ParquetFile(path)
            if not set(self._file.schema_arrow.names) >= _COLUMNS:
                raise DataUnreadable(path.name, f"must have the columns {', '.join(sorted(_COLUMNS))}")
            self._groups = {
                name: group
                for group in range(self._file.num_row_groups)
                for name in self._file.read_row_group(group, columns=["sample_id"]).column(0).to_pylist()
            }
        except (pa.ArrowException, OSError) as error:
            raise DataUnreadable(path.name, f"is not a Parquet file of scores: {error}") from error
        self._ranks = lru_cache(maxsize=4)(partial(self._read, column="ranks"))
        self._scores = lru_cache(maxsize=4)(partial(self._read, column="scores"))

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._groups)

    def of(self, sample_id: str) -> Mapping[str, int] | None:
        group = self._groups.get(sample_id)
        return None if group is None else self._ranks(group)[sample_id]

    def scores_of(self, sample_id: str) -> Mapping[str, float]:
        """Return the scores of a step's candidates by id, empty for an unknown step. Blocks."""
        group = self._groups.get(sample_id)
        return {} if group is None else self._scores(group)[sample_id]

    def _read(self, group: int, column: str) -> dict[str, dict[str, Any]]:
        try:
            table = self._file.read_row_group(group, columns=["sample_id", "ids", column])
        except (pa.ArrowException, OSError) as error:
            raise DataUnreadable(self.name, f"is damaged: {error}") from error
        rows = zip(*(table.column(name).to_pylist() for name in ("sample_id", "ids", column)), strict=True)
        return {name: dict(zip(ids, values, strict=True)) for name, ids, values in rows}


def parquet_of(file: Path, folder: Path) -> Path:
    """Return the Parquet file of a scores file: the file itself, an earlier conversion in ``folder``, or a new one.

    A new conversion blocks for a minute or more.

    Raises:
        SuiteError: the file does not exist, or the pickle contains anything but scores.
    """
    if not file.is_file():
        raise SuiteError(f"{file} does not exist")
    with file.open("rb") as source:
        if source.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return file
        source.seek(0)
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    target = folder / f"{digest}.parquet"
    if not target.is_file():
        with atomic_path(target) as draft:
            _run_child(file, draft, digest)
    return target


def _run_child(pickle: Path, place: Path, digest: str) -> None:
    """Run the child, which converts the pickle. Raises SuiteError.

    It gets open files but no paths, no environment and only the digest as argument.
    """
    with pickle.open("rb") as source, place.open("wb") as out:
        try:
            child = subprocess.run(  # noqa: S603 - our own program, on our own interpreter
                [sys.executable, "-I", str(_CHILD), digest],
                stdin=source,
                stdout=out,
                stderr=subprocess.PIPE,
                env={},
                start_new_session=True,
                timeout=CONVERSION_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SuiteError(f"{pickle.name}: not converted within {CONVERSION_S:g} s") from error
        os.fsync(out.fileno())
    report: dict[str, Any] = {}
    with suppress(ValueError, IndexError):
        report = json.loads(child.stderr[-_MAX_REPORT_CHARS:].decode("utf-8", "replace").splitlines()[-1])
    if child.returncode != 0 or "steps" not in report:
        reason = (
            report.get("refused")
            or f"the conversion process exited with code {child.returncode} (resource limit or crash)"
        )
        raise SuiteError(f"{pickle.name} was rejected: {reason}")
