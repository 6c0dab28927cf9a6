"""Sources of a result, counted when it is stored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.captures import key_digest
from app.storage.results import result_source_rows
from cache.urls import canonical_key
from tests.fakes.judged import FAILED, NOT_JUDGED, group, leaf, result_of, rubric_of

ONE, TWO = "https://one.example/a", "https://two.example/"


def count_sources(*nodes, pages=()):
    found = result_source_rows("res_1", json.dumps(result_of(rubric_of(*nodes), pages=pages)))
    return {row["url"]: (row["leaves"], row["open_leaves"], row["calls"], row["usd"]) for row in found}


def test_each_page_is_counted_with_its_leaves_and_their_cost():
    found = count_sources(
        leaf("a", claim="x", sources=[ONE, TWO]),
        group("g", leaf("b", NOT_JUDGED, claim="y", sources=[ONE]), leaf("c", FAILED, claim="z", sources=[])),
        leaf("code"),
    )
    assert found == {ONE: (2, 1, 4, pytest.approx(0.0062)), TWO: (1, 0, 2, pytest.approx(0.0031))}


@given(
    st.lists(
        st.lists(st.sampled_from([ONE, TWO, "HTTPS://ONE.example/a", "https://one.example/a/"]), max_size=4), max_size=6
    )
)
def test_every_page_has_one_row_and_every_leaf_is_counted(sources):
    rows = result_source_rows(
        "r", json.dumps(result_of(rubric_of(*(leaf(f"n{n}", claim="x", sources=s) for n, s in enumerate(sources)))))
    )
    keys = [row["key_sha256"] for row in rows]
    assert len(keys) == len(set(keys))
    wanted = [key_digest(canonical_key(url)) for urls in sources for url in {canonical_key(url) for url in urls}]
    assert sum(row["leaves"] for row in rows) == len(wanted)
