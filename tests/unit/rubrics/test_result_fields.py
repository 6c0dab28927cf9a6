"""Fields of stored results in every schema version."""

from __future__ import annotations

from typing import Any

import pytest

from rubrics.result_fields import page_digests_of, parameters_of, script_of, script_sha256_of

PARAMETERS = {"verify": {"reasoning_effort": "low"}}
SCRIPT = {"name": "bridges", "version": "3", "kind": "native", "sha256": "ab" * 32}
VERSION_1 = {
    "schema_version": 1,
    "judge": {
        "name": "bridges",
        "version": "3",
        "kind": "native",
        "script_sha256": "ab" * 32,
        "parameters": PARAMETERS,
    },
}
VERSION_2 = {
    "schema_version": 2,
    "judge": {"model": "m", "reasoning_effort": "low", "temperature": None},
    "script": SCRIPT,
    "parameters": PARAMETERS,
}


@pytest.mark.parametrize("result", [VERSION_1, VERSION_2], ids=["1", "2"])
def test_script_and_parameters_are_read_from_every_version(result: dict[str, Any]) -> None:
    assert script_of(result) == SCRIPT
    assert script_sha256_of(result) == "ab" * 32
    assert parameters_of(result) == PARAMETERS


def test_result_of_the_public_toolkit_has_only_the_hash_of_its_script() -> None:
    result = {"judge": {"model": "m"}, "eval_script_sha256": "cd" * 32}
    assert script_of(result) == {"sha256": "cd" * 32}
    assert parameters_of(result) is None


@pytest.mark.parametrize("result", [{}, {"judge": None}, {"judge": [1], "script": "s", "parameters": 3}])
def test_missing_or_invalid_fields_are_unknown(result: dict[str, Any]) -> None:
    assert script_of(result) == {}
    assert script_sha256_of(result) is None
    assert parameters_of(result) is None


def test_digests_of_a_leaf_are_read_from_every_version() -> None:
    assert page_digests_of({"evidence": ["a", "b"]}) == ("a", "b")
    assert page_digests_of({"evidence": {"claim": "c", "sources": [], "checks": []}, "page_digests": ["a"]}) == ("a",)
    assert (
        page_digests_of({"evidence": {"claim": "c"}})
        == page_digests_of({})
        == page_digests_of({"evidence": None})
        == ()
    )
