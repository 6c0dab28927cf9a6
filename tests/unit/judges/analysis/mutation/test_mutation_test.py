"""Mutation tests of a judge: expected changes, missed changes and changes without a cause."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from judges.analysis.mutation.mutation_test import MutationTest, report_json
from judges.analysis.mutation.mutations import MutationKind
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
