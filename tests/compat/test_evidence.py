"""Evidence of nodes: claim, judgement on each source, and why a node was not judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cache.capture import CaptureOutcome
from mind2web2 import AggregationStrategy, CacheFileSys, Evaluator, VerificationNode
from tests.compat.scripted import ScriptedClient, initialized_evaluator, nodes
from tests.compat.test_agent_results import Web

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


async def test_nodes_that_were_never_verified_have_no_evidence():
    e = initialized_evaluator(ScriptedClient())
    e.add_custom_node(True, "custom", "custom")
    e.add_leaf("open", "open", e.add_parallel("group", "group"))
    assert VerificationNode(id="n", desc="n").evidence is None
    assert evidence(e) == dict.fromkeys(("root", "custom", "open", "group"))


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


async def test_supporting_source_passes_and_cancelled_ones_have_no_check(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({("c", A): True, ("c", B): False}, suspends=False), cache)
    await e.verify("c", e.add_leaf("a", "a"), [A])
    assert [check["passed"] for check in evidence(e)["a"]["checks"]] == [True]
    await e.verify("c", e.add_leaf("b", "b"), [B, A])
    checks = {check["url"]: check["passed"] for check in evidence(e)["b"]["checks"]}
    assert checks[A] is True and checks.get(B, False) is False


@pytest.mark.parametrize("source", ["", "https://a.com/none"])
async def test_source_that_cannot_be_had_is_noted_as_no_page(source: str):
    client = ScriptedClient()
    e = initialized_evaluator(client, browser_manager=Web((CaptureOutcome.BLOCKED, False)))
    assert not await e.verify("c", e.add_leaf("a", "a"), source)
    check = {"url": source, "passed": False, "votes": [], "reasoning": None, "note": "no page"}
    assert evidence(e)["a"] == {"claim": "c", "sources": [source], "checks": [check]}
    assert client.calls == []


async def test_failed_vote_is_noted_as_an_error(cache: CacheFileSys):
    e = initialized_evaluator(ScriptedClient({"c": [True, RuntimeError("down"), True]}), cache)
    assert not await e.verify("c", e.add_leaf("a", "a"), A)
    [check] = evidence(e)["a"]["checks"]
    assert (check["passed"], check["reasoning"], check["note"]) == (False, None, "error")


async def test_node_skipped_by_a_prerequisite_names_the_leaf():
    e = initialized_evaluator(ScriptedClient())
    group = e.add_parallel("group", "group")
    gate = e.add_custom_node(False, "gate", "gate", group)
    leaf = e.add_leaf("a", "a", group)
    assert not await e.verify("c", leaf, [A])
    assert leaf.evidence == {"claim": "c", "sources": [A], "checks": [], "skipped_because": gate.id}
    assert evidence(e)["a"] == leaf.evidence


async def test_node_cut_off_by_scoring_names_the_first_imperfect_step_only_in_the_summary():
    e = initialized_evaluator(ScriptedClient({"bad": False}))
    steps = e.add_sequential("steps", "steps")
    half = e.add_parallel("half", "half", steps)
    good, bad = e.add_leaf("good", "good", half), e.add_leaf("bad", "bad", half)
    later, unverified = e.add_leaf("later", "later", steps), e.add_leaf("unverified", "unverified", steps)
    await e.verify("c", later)
    await e.verify("c", good)
    await e.verify("bad", bad)
    found = evidence(e)
    assert found["later"]["skipped_because"] == "half"
    assert found["later"]["checks"][0]["passed"] is True
    assert later.evidence is not None and "skipped_because" not in later.evidence
    assert found["unverified"] is None and unverified.status == "skipped"
    assert "skipped_because" not in found["good"]


async def test_gate_takes_precedence_over_the_imperfect_step():
    e = initialized_evaluator(ScriptedClient())
    steps = e.add_sequential("steps", "steps")
    half = e.add_parallel("half", "half", steps)
    e.add_custom_node(True, "yes", "yes", half, critical=False)
    e.add_custom_node(False, "no", "no", half, critical=False)
    await e.verify("c", e.add_leaf("later", "later", steps))
    assert evidence(e)["later"]["skipped_because"] == "no"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_trials": 4}, "ValueError: num_trials must be odd and positive, not 4"),
        ({"sources": (A,)}, "TypeError: sources must be None, a string or a list, not tuple"),
        ({"extra_prerequisites": "self"}, "ValueError: node 'a' cannot be its own prerequisite"),
    ],
)
async def test_call_that_can_never_be_judged_has_an_error(arguments: dict[str, Any], error: str):
    client = ScriptedClient()
    e = initialized_evaluator(client)
    leaf = e.add_leaf("a", "a")
    if arguments.get("extra_prerequisites") == "self":
        arguments = {"extra_prerequisites": [leaf]}
    assert not await e.verify("c", leaf, **arguments)
    found = evidence(e)["a"]
    assert (found["claim"], found["checks"], found["error"]) == ("c", [], error)
    assert client.calls == []


async def test_each_check_is_one_log_record(cache: CacheFileSys, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    e = initialized_evaluator(ScriptedClient({("two", A): False, ("two", B): False}), cache)
    await e.verify("two", e.add_leaf("a", "a"), [A, B])
    gate = e.add_custom_node(False, "gate", "gate")
    await e.verify("never", e.add_leaf("b", "b", critical=True), A)
    await e.verify("bad call", e.add_leaf("c", "c", e.add_parallel("group", "group")), num_trials=2, sources=[B])
    fields = ("node_id", "url", "claim", "votes", "passed", "reasoning", "status")
    records = [tuple(vars(record)[name] for name in fields) for record in caplog.records if hasattr(record, "node_id")]
    assert records[:2] == [("a", url, "two", [False, False], False, "ruled False", "failed") for url in (A, B)]
    assert records[2] == ("b", None, "never", [], False, None, "skipped")
    assert [(record[0], record[-1]) for record in records[3:]] == [("c", "skipped")] and gate.status == "failed"


async def test_second_verification_replaces_the_evidence():
    e = initialized_evaluator(ScriptedClient({"first": False}))
    leaf = e.add_leaf("a", "a")
    await e.verify("first", leaf)
    await e.verify("second", leaf)
    assert evidence(e)["a"]["claim"] == "second"


async def test_inner_node_that_was_verified_has_evidence():
    e = initialized_evaluator(ScriptedClient())
    group = e.add_parallel("group", "group")
    e.add_leaf("a", "a", group)
    await e.verify("c", group)
    assert evidence(e)["group"]["claim"] == "c"
    assert group.strategy is AggregationStrategy.PARALLEL
