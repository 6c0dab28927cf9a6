"""Replay and rerun of bundles of public task scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.features.bundles.replay import replay
from app.features.bundles.verification import verify
from judges.analysis.recomputation import score_differences
from rubrics.tree_json import nodes_below
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES
from tests.compat.test_scripts import Hosted
from tests.fakes.bundled import InMemoryJudging, check_replay, read_member, rebuilt

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")


async def test_public_scripts_are_replayed_and_rerun(tmp_path: Path):
    world = InMemoryJudging(
        tmp_path, Hosted(CASES[0]), capturer=FixedPages({url: f"What stands on {url}" for url in PAGES})
    )
    for case in CASES:
        world.llm = Hosted(case)
        await world.judge(case.path.read_text("utf-8"), task=case.name, answer=case.answer)
    bundle, made = await world.bundle()
    assert made.absent == ()
    # One script builds its result without a tree, so its score can only be checked by running it.
    assert [each.task_id for each in verify(bundle).results if each.unchecked] == ["pages"]
    await check_replay(bundle, world)


async def test_script_that_names_neither_agent_nor_answer_is_replayed_and_rerun(tmp_path: Path):
    case = CASES[0]
    source = case.path.read_text("utf-8")
    unnamed = source.replace("agent_name=agent_name,", "").replace("answer_name=answer_name,", "")
    assert unnamed != source
    world = InMemoryJudging(
        tmp_path, Hosted(case), capturer=FixedPages({url: f"What stands on {url}" for url in PAGES})
    )
    judged = await world.judge(unnamed, task=case.name, answer=case.answer)
    assert (judged["agent_name"], judged["answer_name"]) == ("unknown_agent", "unknown_answer")
    bundle, _ = await world.bundle()
    await check_replay(bundle, world)


async def test_forged_tree_of_a_public_script_is_found(tmp_path: Path):
    """The claims of a public script need not be in its tree, so only a replay finds a leaf that was left out."""
    case = CASES[0]
    world = InMemoryJudging(
        tmp_path, Hosted(case), capturer=FixedPages({url: f"What stands on {url}" for url in PAGES})
    )
    await world.judge(case.path.read_text("utf-8"), task=case.name, answer=case.answer)
    bundle, _ = await world.bundle()
    path = f"results/{world.results[0].id}.json"

    def forged(**changes: Any) -> Path:
        result = json.loads(read_member(bundle, path))
        [part] = result["eval_breakdown"]
        voted = [leaf for leaf in nodes_below(part["verification_tree"]) if leaf.get("votes")]
        assert isinstance(voted[0], dict)
        voted[0].update(changes)
        for difference in list(score_differences(result)):
            node = next((n for n in nodes_below(part["verification_tree"]) if f"node {n['id']}" == difference.where), 0)
            target = node or result
            assert isinstance(target, dict)
            target.update(difference.recomputed if node else {difference.where: difference.recomputed})
        return rebuilt(bundle, tmp_path / "forged.zip", {path: json.dumps(result).encode()})

    [checked] = verify(bundle).results
    leaf = next(
        leaf
        for part in json.loads(read_member(bundle, path))["eval_breakdown"]
        for leaf in nodes_below(part["verification_tree"])
        if leaf.get("votes")
    )
    other = {"passed": "failed", "failed": "passed"}[leaf["outcome"]]
    points = 1.0 - leaf["score"]
    bounds = {"low": points, "high": points, "score": points, "status": other}
    votes = [{**vote, "result": not vote["result"]} for vote in leaf["votes"]]
    assert checked.differences == ()
    for changes, says in (
        (bounds, "bounds of leaf"),
        ({"low": 0.0, "high": 1.0}, "bounds of leaf"),
        ({**bounds, "outcome": other}, "votes of leaf"),
        ({**bounds, "outcome": other, "votes": votes}, "votes of leaf"),
    ):
        assert says in (verify(forged(**changes)).first_problem or ""), changes
    dropped = json.loads(read_member(bundle, path))
    dropped["eval_breakdown"][0]["verification_tree"]["children"].pop()
    for difference in list(score_differences(dropped)):
        node = dropped["eval_breakdown"][0]["verification_tree"] if difference.where == "node root" else None
        if node is None:
            dropped[difference.where] = difference.recomputed
        else:
            node.update(difference.recomputed)
    replayed = await replay(
        rebuilt(bundle, tmp_path / "dropped.zip", {path: json.dumps(dropped).encode()}), world.settings
    )
    assert not replayed.valid
