"""Root hashes of bundles, noted in a result file and removed again byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.features.bundles.recorded_roots import with_root, without_roots

pytestmark = pytest.mark.slow

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("bundles"), inner),
    max_leaves=10,
)
RESULTS = st.dictionaries(st.text() | st.just("bundles"), VALUES, min_size=1)


def root_note(number: int) -> dict[str, Any]:
    return {"root_sha256": f"{number:064x}", "content": True, "created_at": "2026-03-04T05:06:07Z"}


def result_bytes(result: Any) -> bytes:
    """Return the bytes that ``write_json`` writes."""
    return (json.dumps(result, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


@given(RESULTS, st.integers(1, 3))
def test_noted_roots_are_removed_byte_for_byte(result: dict[str, Any], roots: int):
    file = result_bytes(result)
    noted = file
    for number in range(roots):
        noted = with_root(noted, root_note(number))
    assert without_roots(file) == file
    assert without_roots(noted) == file
    assert json.loads(noted)["bundles"] == [root_note(number) for number in range(roots)]
    assert with_root(noted, root_note(0) | {"created_at": "later"}) == noted


@pytest.mark.parametrize("file", [b"", b"[]\n", b"{}", b'{"a": 1}', b'{\n  "bundles": [1]\n}\n', b"\xff\xfe"])
def test_foreign_file_is_unchanged(file: bytes):
    assert without_roots(file) == file
    assert without_roots(with_root(file, root_note(1))) == file


@pytest.mark.parametrize("note", ["[]", "null", "[{}]", '[{"root_sha256": "x"}]', "[", '"x"', "[\n]"])
def test_foreign_bundles_value_is_part_of_the_result(note: str):
    file = f'{{\n  "score": 1,\n  "bundles": {note}\n}}\n'.encode()
    assert without_roots(file) == file
