"""Conversion of candidate scores from a pickle to a lookup table, in the real child process."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from judges.suites.errors import SuiteError
from judges.suites.mind2web.candidate_scores import ScoreTable, parquet_of
from tests.fakes.mind2web import ranks_of_nine_steps, write_scores


class FileCreator:
    """Object that creates a file when it is unpickled without restrictions."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._canary}",)


def test_pickle_is_converted_to_a_rank_table(tmp_path: Path):
    ranks = ranks_of_nine_steps()
    file = write_scores(tmp_path / "scores.pkl", ranks)
    converted = parquet_of(file, tmp_path / "deep")
    assert converted.stem == hashlib.sha256(file.read_bytes()).hexdigest()
    assert parquet_of(converted, tmp_path) == converted
    table = ScoreTable(converted)
    assert len(table) == 9
    assert {name: dict(table.of(name) or {}) for name in ranks} == ranks
    assert table.of("T9_z") is None


def test_malicious_pickle_is_rejected_and_leaves_no_file(tmp_path: Path):
    canary = tmp_path / "canary"
    file = tmp_path / "s.pkl"
    file.write_bytes(pickle.dumps({"scores": {}, "ranks": {"T": {"1": FileCreator(canary)}}}))
    with pytest.raises(SuiteError, match=r"s\.pkl was rejected: it references posix\.system"):
        parquet_of(file, tmp_path / "out")
    assert not canary.exists()
    assert list((tmp_path / "out").iterdir()) == []


def test_pickle_that_requests_all_memory_is_rejected(tmp_path: Path):
    file = tmp_path / "s.pkl"
    # A memo index above 2**31: an unrestricted reader would allocate memory up to it.
    file.write_bytes(b"\x80\x04N" + b"r" + (2**31 - 1).to_bytes(4, "little") + b".")
    with pytest.raises(SuiteError, match="rejected"):
        parquet_of(file, tmp_path / "out")
