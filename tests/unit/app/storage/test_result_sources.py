"""Sources of a result, counted when it is stored."""

from __future__ import annotations

import json

import pytest

from app.storage.results import result_source_rows
from tests.fakes.judged import FAILED, NOT_JUDGED, group, leaf, result_of, rubric_of

ONE, TWO = "https://one.example/a", "https://two.example/"


def count_sources(*nodes, pages=()):
    found = result_source_rows("res_1", json.dumps(result_of(rubric_of(*nodes), pages=pages)))
    return {row["url"]: (row["leaves"], row["open_leaves"], row["calls"], row["usd"]) for row in found}


def test_each_page_is_counted_with_its_leaves_and_their_cost():
    found = count_sources(
        leaf("a", claim="x", sources=[ONE, TWO]),
        leaf("d", claim="w", sources=["HTTPS://ONE.example/a"]),
        group("g", leaf("b", NOT_JUDGED, claim="y", sources=[ONE]), leaf("c", FAILED, claim="z", sources=[])),
        leaf("code"),
    )
    assert found == {ONE: (3, 1, 6, pytest.approx(0.0093)), TWO: (1, 0, 2, pytest.approx(0.0031))}
