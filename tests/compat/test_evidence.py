"""Evidence of nodes: claim, judgement on each source, and why a node was not judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mind2web2 import CacheFileSys, Evaluator
from tests.compat.scripted import ScriptedClient, initialized_evaluator, nodes

A, B = "https://a.com/page", "https://b.com/page"


@pytest.fixture
def cache(tmp_path: Path) -> CacheFileSys:
    cache = CacheFileSys(tmp_path)
    for url in (A, B):
        cache.put_web(url, f"text of {url}", None)
    return cache


def evidence(evaluator: Evaluator) -> dict[str, Any]:
    """Return the evidence of every node in the summary, by id."""
    return {id: node["evidence"] for id, node in nodes(evaluator.get_summary()).items()}


async def test_claim_about_the_answer_has_one_check_without_url():
    e = initialized_evaluator(ScriptedClient({"no": [False, True, False]}))
    leaf = e.add_leaf("a", "a")
    await e.verify("no", leaf)
    expected = {
        "claim": "no",
        "sources": [],
        "checks": [{"url": None, "passed": False, "votes": [False, True, False], "reasoning": "ruled False"}],
    }
    assert leaf.evidence == expected
    assert evidence(e)["a"] == expected


async def test_each_source_has_its_own_check_in_the_order_of_the_sources(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({"c": False}), cache)
    await e.verify("c", e.add_leaf("a", "a"), [B, "", A, None])
    found = evidence(e)["a"]
    assert found["sources"] == [B, "", A, ""]
    assert [check["url"] for check in found["checks"]] == [B, "", A, ""]
    judged = [check for check in found["checks"] if check["url"]]
    assert [(check["passed"], check["votes"], check["reasoning"]) for check in judged] == [
        (False, [False, False], "ruled False")
    ] * 2
    missing = [check for check in found["checks"] if not check["url"]]
    assert missing == [{"url": "", "passed": False, "votes": [], "reasoning": None, "note": "no page"}] * 2


async def test_node_skipped_by_a_prerequisite_names_the_leaf():
    e = initialized_evaluator(ScriptedClient())
    group = e.add_parallel("group", "group")
    gate = e.add_custom_node(False, "gate", "gate", group)
    leaf = e.add_leaf("a", "a", group)
    assert not await e.verify("c", leaf, [A])
    assert leaf.evidence == {"claim": "c", "sources": [A], "checks": [], "skipped_because": gate.id}
    assert evidence(e)["a"] == leaf.evidence
