"""Pickles of scores: unknown names are refused before they are looked up, so no code of a pickle runs."""

from __future__ import annotations

import builtins
import io
import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judges.suites.mind2web.candidate_scores_child import PickleRejected, read_scores, samples

PROTOCOLS = (0, 2, 4)


class PickledCall:
    """Object that pickles as a call of ``function`` with ``args``."""

    def __init__(self, function: Any, *args: Any) -> None:
        self._call = (function, args)

    def __reduce__(self) -> Any:
        return self._call


def read(document: Any, protocol: int = 4) -> list[tuple[str, list[str], list[float | None], list[int]]]:
    """Return the scores of a pickled document as the child process reads it."""
    return list(samples(read_scores(io.BytesIO(pickle.dumps(document, protocol)))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_published_structure_is_read_in_every_protocol(protocol: int):
    scores: Any = defaultdict(dict, {"T_a": {"1": np.float32(0.5), "2": 0.25, "3": np.float64(0.125)}})
    ranks: Any = defaultdict(dict, {"T_a": {"1": 0, "2": np.int64(1), "3": np.int32(2)}})
    assert read({"scores": scores, "ranks": ranks}, protocol) == [
        ("T_a", ["1", "2", "3"], [0.5, 0.25, 0.125], [0, 1, 2])
    ]


HOSTILE = {
    "os.system": lambda canary: PickledCall(os.system, f"touch {canary}"),
    "getattr": lambda canary: PickledCall(builtins.getattr, "text", "upper"),
    "nested reduce": lambda canary: PickledCall(dict, [("x", PickledCall(os.system, f"touch {canary}"))]),
    "defaultdict of os.system": lambda canary: defaultdict(os.system),  # type: ignore[arg-type]
    "numpy object": lambda canary: np.dtype("O"),
    "set": lambda canary: {1},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("protocol", [0, 4])
def test_hostile_objects_are_rejected_without_side_effects(tmp_path: Path, name: str, protocol: int):
    canary = tmp_path / "canary"
    hostile = HOSTILE[name](canary)
    for place in (
        {"scores": {}, "ranks": {"T": {"1": hostile}}},
        {"scores": {"T": hostile}, "ranks": {"T": {"1": 0}}},
        hostile,
    ):
        written = pickle.dumps(place, protocol)
        with pytest.raises(PickleRejected):
            list(samples(read_scores(io.BytesIO(written))))
        assert not canary.exists()


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a frame longer than any file
        b"cposix\nsystem\n(S'true'\ntR.",
        b"(cos\nsystem\nS'true'\no.",  # OBJ opcode
        b"P1\n.",  # persistent id
        b"\x80\x04" + b"(" * 100_000 + b".",
        pickle.dumps({"scores": {}}),
    ],
)
def test_malformed_pickles_are_rejected(written: bytes):
    with pytest.raises(PickleRejected):
        read_scores(io.BytesIO(written))


def test_shared_maps_cannot_exceed_the_entry_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("judges.suites.mind2web.candidate_scores_child.MAX_ENTRIES", 5000)
    inside = {str(n): n for n in range(100)}
    bomb = {"scores": {}, "ranks": {f"T{n}": inside for n in range(1000)}}
    assert len(pickle.dumps(bomb)) < 20_000
    with pytest.raises(PickleRejected, match="more than 5000 entries"):
        read(bomb)
