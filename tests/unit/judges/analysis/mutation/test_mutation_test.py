"""Mutation tests of a judge: expected changes, missed changes and changes without a cause."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from judges.analysis.mutation.leaves import observed_run
from judges.analysis.mutation.mutation_test import ChangeResult, MutationTest, report_json
from judges.analysis.mutation.mutations import MutationKind, mutations_of
from judges.result import native_summary
from judges.trial import try_judge

pytestmark = pytest.mark.slow

HERON, OTTER = "https://pellard.example/heron", "https://pellard.example/otter"
PAGES = {
    HERON: "The Heron costs 430 crowns. The Heron was mutations by Ida Norrstad.",
    OTTER: "The Otter costs 290 crowns. The Otter was mutations by Tobias Quell.",
}
ANSWER = dedent(
    f"""\
    ## Heron
    - Price: 430 crowns
    - Maker: Ida Norrstad
    - Source: {HERON}

    ## Otter
    - Price: 290 crowns
    - Maker: Tobias Quell
    - Source: {OTTER}
    """
)
JUDGE = """\
from pydantic import BaseModel

from judges.context import JudgeContext
from judges.registry import judge


class Gauge(BaseModel):
    price: str = ""
    maker: str = ""
    sources: list[str] = []


class Found(BaseModel):
    heron: Gauge = Gauge()
    otter: Gauge = Gauge()


@judge(task="gauges", description="What do the gauges cost and who mutations them?")
async def gauges(ctx: JudgeContext) -> None:
    found = await ctx.extract(Found, "Read out both gauges.")
    for name, gauge in (("Heron", found.heron), ("Otter", found.otter)):
        group = ctx.parallel(name.lower(), name)
        group.check("given", gauge.price, critical=True)
        group.verify("price", {price}, sources={sources})
        group.verify("maker", f"The {{name}} was mutations by {{gauge.maker}}", sources=gauge.sources)
    {more}
"""
HONEST = {"price": 'f"The {name} costs {gauge.price}"', "sources": "gauge.sources", "more": "pass"}


def write_judge(tmp_path: Path, **changes: str) -> Path:
    path = tmp_path / "gauges.py"
    path.write_text(JUDGE.format(**(HONEST | changes)))
    return path


async def report_of(path: Path, *, answer: str = ANSWER, per_kind: int | None = None, seed: int = 0) -> dict[str, Any]:
    async def judge(text: str) -> dict[str, Any]:
        return native_summary(await try_judge(path, text, PAGES), agent_name="a")

    testing = MutationTest(judge, answer)
    base = await testing.base()
    return report_json(base, await testing.run(base, PAGES, seed=seed, per_kind=per_kind), seed=seed, model="lexical")


def fates(report: dict[str, Any]) -> dict[str, set[str]]:
    """Return all fates of each leaf."""
    found: dict[str, set[str]] = {}
    for change in report["mutations"]:
        for one in change["expected"]:
            found.setdefault(one["leaf"], set()).add(one["fate"])
    return found


async def test_correct_judge_detects_every_change(tmp_path: Path) -> None:
    report = await report_of(write_judge(tmp_path))

    assert (report["missed"], report["strays"], report["not_judged"]) == (0, 0, 0)
    assert report["leaves"]["never_tested"] == []
    assert {change["kind"] for change in report["mutations"]} == {kind.value for kind in MutationKind}
    assert all("moved" in each for each in fates(report).values())


async def test_each_mutation_expects_changes_only_in_dependent_leaves(tmp_path: Path) -> None:
    report = await report_of(write_judge(tmp_path))
    expected = {change["title"]: [one["leaf"] for one in change["expected"]] for change in report["mutations"]}

    assert expected[f"citation dropped: {HERON}"] == ["heron/price", "heron/maker"]
    assert expected["section emptied: Otter"] == ["otter/price", "otter/maker"]
    assert expected["only a blank line added"] == []
    (swapped,) = (leaves for title, leaves in expected.items() if title.startswith("'430' replaced"))
    assert swapped == ["heron/price"]
    (renamed,) = (leaves for title, leaves in expected.items() if title.startswith("'Ida Norrstad' replaced"))
    assert renamed == ["heron/maker"]


async def test_claim_with_a_hard_coded_value_is_reported_as_fixed(tmp_path: Path) -> None:
    path = write_judge(tmp_path, price="f\"The {name} costs {430 if name == 'Heron' else 290} crowns\"")
    report = await report_of(path)
    swapped = next(mutation for mutation in report["mutations"] if mutation["piece"] == "430")
    assert [(one["leaf"], one["fate"]) for one in swapped["expected"]] == [("heron/price", "fixed")]
    assert report["missed"] == 2  # this one and the price of the Otter


async def test_dropped_citation_is_not_expected_to_change_leaves_with_fixed_sources(tmp_path: Path) -> None:
    report = await report_of(write_judge(tmp_path, sources=f'["{HERON}", "{OTTER}"]'))
    dropped = next(mutation for mutation in report["mutations"] if mutation["title"] == f"citation dropped: {HERON}")
    assert [one["leaf"] for one in dropped["expected"]] == ["heron/maker"]


async def test_judge_that_ignores_changes_is_deaf(tmp_path: Path) -> None:
    path = write_judge(tmp_path)
    first: dict[str, Any] = {}

    async def first_result(text: str) -> dict[str, Any]:
        """Return the result of the first answer for every answer."""
        if not first:
            first.update(native_summary(await try_judge(path, text, PAGES), agent_name="a"))
        return first

    testing = MutationTest(first_result, ANSWER)
    base = await testing.base()
    runs = await testing.run(base, PAGES, seed=0, per_kind=None)
    watched = [one for run in runs for one in run.watched]
    assert watched and {one.fate for one in watched} == {ChangeResult.DEAF}


async def test_judge_that_falls_back_to_the_answer_is_unsourced(tmp_path: Path) -> None:
    report = await report_of(write_judge(tmp_path, sources="gauge.sources or None"))
    dropped = next(mutation for mutation in report["mutations"] if mutation["title"] == f"citation dropped: {HERON}")
    fate = {one["leaf"]: one["fate"] for one in dropped["expected"]}
    assert fate == {"heron/price": "unsourced", "heron/maker": "moved"}


async def test_judge_that_passes_everything_is_lenient(tmp_path: Path) -> None:
    path = write_judge(tmp_path)

    async def passes_everything(text: str) -> dict[str, Any]:
        result = native_summary(await try_judge(path, text, PAGES), agent_name="a")
        for leaf in _leaves(result["eval_breakdown"][0]["verification_tree"]):
            leaf["outcome"] = "passed"
        return result

    testing = MutationTest(passes_everything, ANSWER)
    base = await testing.base()
    report = report_json(base, await testing.run(base, PAGES, seed=0, per_kind=None), seed=0, model="m")
    missed = [one for change in report["mutations"] for one in change["expected"] if one["fate"] == "lenient"]
    assert report["missed"] == report["expected"] == len(missed) > 10


async def test_leaf_that_changes_without_a_cause_is_a_stray(tmp_path: Path) -> None:
    path, calls = write_judge(tmp_path), 0

    async def flaky(text: str) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        result = native_summary(await try_judge(path, text, PAGES), agent_name="a")
        if calls == 2:  # the run in which only a blank line was added
            leaf = next(
                one for one in _leaves(result["eval_breakdown"][0]["verification_tree"]) if "maker" in one["id"]
            )
            leaf["outcome"] = "failed"
        return result

    testing = MutationTest(flaky, ANSWER)
    base = await testing.base()
    report = report_json(base, await testing.run(base, PAGES, seed=0, per_kind=1), seed=0, model="m")
    assert report["mutations"][0]["strays"] == [
        {
            "leaf": "heron/maker",
            "claim": "The Heron was mutations by Ida Norrstad",
            "outcome_before": "passed",
            "outcome_after": "failed",
        }
    ]
    assert report["strays"] == 1


async def test_not_judged_leaf_counts_neither_as_detected_nor_as_missed(tmp_path: Path) -> None:
    path, calls = write_judge(tmp_path), 0

    async def down(text: str) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        result = native_summary(await try_judge(path, text, PAGES), agent_name="a")
        if calls > 1:
            for leaf in _leaves(result["eval_breakdown"][0]["verification_tree"]):
                leaf["outcome"] = "not_judged"
        return result

    testing = MutationTest(down, ANSWER)
    base = await testing.base()
    report = report_json(base, await testing.run(base, PAGES, seed=0, per_kind=1), seed=0, model="m")
    assert (report["missed"], report["strays"]) == (0, 0)
    assert report["not_judged"] > 0
    assert {fate for each in fates(report).values() for fate in each} == {"not_judged"}


async def test_equal_seeds_give_equal_mutations_and_other_seeds_differ(tmp_path: Path) -> None:
    base = observed_run(native_summary(await try_judge(write_judge(tmp_path), ANSWER, PAGES), agent_name="a"))

    def mutations(seed: int) -> tuple[object, ...]:
        return mutations_of(ANSWER, base, PAGES, seed=seed, per_kind=1, is_detectable=lambda change: True)

    assert mutations(7) == mutations(7)
    assert len({mutations(seed) for seed in range(5)}) > 1


async def test_invented_values_occur_nowhere_else_and_keep_their_shape(tmp_path: Path) -> None:
    base = observed_run(native_summary(await try_judge(write_judge(tmp_path), ANSWER, PAGES), agent_name="a"))
    known_text = ANSWER + "".join(PAGES.values())
    for seed in range(30):
        for change in mutations_of(ANSWER, base, PAGES, seed=seed, per_kind=None, is_detectable=lambda change: True):
            if change.kind in (MutationKind.SWAP_NUMBER, MutationKind.SWAP_NAME):
                assert change.by not in known_text
                assert change.piece not in re.sub(r"https?://\S+", "", change.text)
            if change.kind is MutationKind.SWAP_NUMBER:
                assert re.fullmatch(r"[1-9]\d\d", change.by)


@pytest.mark.parametrize("answer", ["", "Nothing here.", "## Only a heading"])
async def test_answer_without_passed_leaves_has_no_watched_leaves(tmp_path: Path, answer: str) -> None:
    report = await report_of(write_judge(tmp_path), answer=answer or " ")
    assert (report["leaves"]["watched"], report["expected"], report["strays"]) == (0, 0, 0)


def _leaves(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node] if not node["children"] else [leaf for child in node["children"] for leaf in _leaves(child)]
