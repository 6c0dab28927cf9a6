"""Pickles of scores: unknown names are refused before they are looked up, so no code of a pickle runs."""

from __future__ import annotations

import builtins
import io
import operator
import os
import pickle
import pydoc
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judges.suites.mind2web.scores_child import PickleRejected, read_scores, samples, write

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


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


def test_big_endian_numbers_are_read():
    value = np.dtype(">f8").type(1.5)
    assert read({"scores": {"T": {"1": value}}, "ranks": {"T": {"1": 0}}})[0][2] == [1.5]


HOSTILE = {
    "os.system": lambda canary: PickledCall(os.system, f"touch {canary}"),
    "eval": lambda canary: PickledCall(eval, f"open({str(canary)!r}, 'w')"),
    "getattr": lambda canary: PickledCall(builtins.getattr, "text", "upper"),
    "pydoc.locate": lambda canary: PickledCall(pydoc.locate, "os.system"),
    "operator.methodcaller": lambda canary: PickledCall(operator.methodcaller, "touch"),
    "Path.touch": lambda canary: PickledCall(Path.touch, canary),
    "import": lambda canary: PickledCall(builtins.__import__, "os"),
    "nested reduce": lambda canary: PickledCall(dict, [("x", PickledCall(os.system, f"touch {canary}"))]),
    "OrderedDict": lambda canary: OrderedDict(),
    "defaultdict of os.system": lambda canary: defaultdict(os.system),  # type: ignore[arg-type]
    "numpy array": lambda canary: np.zeros(3),
    "numpy object": lambda canary: np.dtype("O"),
    "set": lambda canary: {1},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("protocol", [0, 2, 4])
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
        b"\x80",
        b"no pickle",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",  # a frame longer than any file
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",  # bytes longer than any memory
        b"cposix\nsystem\n(S'true'\ntR.",
        b"(cos\nsystem\nS'true'\no.",  # OBJ opcode
        b"(S'true'\nios\nsystem\n.",  # INST opcode
        b"P1\n.",  # persistent id
        b"\x80\x02\x82\x01.",  # extension code
        b"\x80\x04" + b"(" * 100_000 + b".",
        pickle.dumps({"scores": {}}),
        pickle.dumps([1, 2]),
    ],
)
def test_malformed_pickles_are_rejected(written: bytes):
    with pytest.raises(PickleRejected):
        read_scores(io.BytesIO(written))


@pytest.mark.parametrize(
    ("scores", "ranks", "message"),
    [
        ({}, {1: {}}, "must be a dict of dicts with string keys"),
        ({}, {"T": []}, "must be a dict of dicts with string keys"),
        ({"T": []}, {"T": {}}, "are not a dict"),
        ({}, {"T": {1: 0}}, "is not a string"),
        ({}, {"T": {"1": "0"}}, "is not an integer >= 0"),
        ({}, {"T": {"1": -1}}, "is not an integer >= 0"),
        ({}, {"T": {"1": True}}, "is not an integer >= 0"),
        ({}, {"T": {"1": 2**31}}, "is not an integer >= 0"),
        ({"T": {"1": float("nan")}}, {"T": {"1": 0}}, "is not a finite number"),
        ({"T": {"1": "x"}}, {"T": {"1": 0}}, "is not a finite number"),
    ],
)
def test_values_of_other_types_are_rejected(scores: Any, ranks: Any, message: str):
    with pytest.raises(PickleRejected, match=message):
        read({"scores": scores, "ranks": ranks})


def test_shared_maps_cannot_exceed_the_entry_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("judges.suites.mind2web.scores_child.MAX_ENTRIES", 5000)
    inside = {str(n): n for n in range(100)}
    bomb = {"scores": {}, "ranks": {f"T{n}": inside for n in range(1000)}}
    assert len(pickle.dumps(bomb)) < 20_000
    with pytest.raises(PickleRejected, match="more than 5000 entries"):
        read(bomb)


def test_recursive_map_is_rejected():
    ranks: dict[str, Any] = {}
    ranks["T"] = ranks
    with pytest.raises(PickleRejected):
        read({"scores": {}, "ranks": ranks})


def test_empty_scores_are_written_as_an_empty_table():
    out = io.BytesIO()
    assert write({"scores": {}, "ranks": {}}, out, sha256="x") == {"steps": 0, "candidates": 0}
    assert out.getvalue().startswith(b"PAR1")
