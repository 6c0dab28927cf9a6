from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judges.suites.errors import DataUnreadable
from judges.suites.json_items import MAX_DEPTH, read_items

scalars = st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\[]{},: \n\u00e9', max_size=12)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
items = st.lists(st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3), max_size=5)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items, st.integers(1, 40), st.sampled_from([None, 2]), st.booleans())
def test_items_equal_those_of_the_whole_file(
    tmp_path: Path, wanted: list, chunk: int, indent: int | None, escaped: bool
):
    file = tmp_path / "items.json"
    file.write_text(json.dumps(wanted, indent=indent, ensure_ascii=escaped), "utf-8")
    assert list(read_items(file, chunk_bytes=chunk)) == wanted


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "unexpected end of file"),
        ("{}", "must be a JSON list"),
        ("[1]", "list of objects or lists"),
        ("[{} {}]", "separated by commas"),
        ("[}]", "unexpected closing bracket"),
        ("[{]}]", "do not match"),
        ("[{a}]", "item 0 is not well-formed"),
        ("[" * 100_000, f"more than {MAX_DEPTH} levels deep"),
    ],
)
def test_invalid_list_is_rejected(tmp_path: Path, written: str, message: str):
    file = tmp_path / "items.json"
    file.write_text(written)
    with pytest.raises(DataUnreadable, match=message):
        list(read_items(file))
