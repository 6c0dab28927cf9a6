"""Field test of one correct judge and of broken variants of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from cache.capture import Evidence
from judges.analysis.mutation.field_test import observe
from judges.analysis.mutation.findings import FieldReport, FindingCode, report
from judges.analysis.mutation.judge_file import judge_file
from judges.extractor import Extractor
from judges.llm.client import LLMClient
from judges.llm.lexical import LexicalClient
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.result import native_summary
from judges.runner import JudgeTools, run_judge
from judges.trial import evidence_of
from judges.verifier import Verifier

pytestmark = pytest.mark.slow

HOST = "https://lights.example"
ANSWER = f"""\
# Two lighthouses

## Lights

| Name | Keeper | Built | Sources |
|---|---|---|---|
| Nesshead Light | Orla Finch | 1788 | {HOST}/ness, {HOST}/list |
| Skerry Beacon | Tam Reeve | 1843 | {HOST}/skerry |

## Choice

- Oldest: Nesshead Light
- Visitors: 450

## Museum

- Opened: 1931
- Curator: Ilse Marrow
- Source: {HOST}/museum
"""
GOOD = """\
from pydantic import BaseModel, Field

from judges.context import JudgeContext
from judges.registry import judge

EXPECTED = ("Nesshead Light", "Skerry Beacon")


class Light(BaseModel):
    name: str = ""
    keeper: str = ""
    built: str = ""
    sources: list[str] = []


class Choice(BaseModel):
    oldest: str = ""
    visitors: int = 0


class Museum(BaseModel):
    opened: str = ""
    curator: str = ""
    sources: list[str] = []


class Found(BaseModel):
    lights: list[Light] = []
    choice: Choice = Choice()
    museum: Museum = Museum()


@judge(task="lights", description="Which lighthouses are there, which is the oldest, and who runs the museum?")
async def lights(ctx: JudgeContext) -> None:
    found = await ctx.extract(Found, "Read out the lighthouses.")
    items = [*found.lights, Light(), Light()][:2]
    for number, expected in enumerate(EXPECTED):
        light = items[number]
        group = ctx.parallel(f"light_{number}", f"Light {number}")
        group.check("given", light.name and light.keeper and light.built and light.sources, critical=True)
        group.check("name", light.name.casefold() == expected.casefold())
        group.verify("keeper", f"{light.keeper} keeps {light.name}", sources=light.sources)
        group.verify("built", f"{light.name} was built in {light.built}", sources=light.sources)
    ctx.verify("oldest", f"'{found.choice.oldest}' and 'Nesshead Light' are the same lighthouse")
    ctx.check("visitors", found.choice.visitors >= 400)
    museum = ctx.parallel("museum", "The museum")
    museum.check("given", found.museum.opened and found.museum.curator)
    museum.verify("opened", f"The museum was opened in {found.museum.opened}", sources=found.museum.sources)
    museum.verify("curator", f"{found.museum.curator} runs the museum", sources=found.museum.sources)
"""


async def any_page(url: str) -> Evidence:
    return evidence_of(url, "A page.")


async def report_of(path: Path, source: str, answer: str = ANSWER) -> FieldReport:
    await asyncio.to_thread(path.write_text, source)
    judge = load_judge(path)
    block_builder = BlockBuilder(b"a test needs no secret")
    preparer = PagePreparer(block_builder)

    async def judged(text: str, wrap: Callable[[LLMClient], LLMClient]) -> dict[str, Any]:
        llm = wrap(LexicalClient())
        tools = JudgeTools(
            verifier=Verifier(llm, "replay", block_builder=block_builder, pages=preparer),
            extractor=Extractor(llm, "replay", block_builder=block_builder, pages=preparer),
            evidence_for=any_page,
            trials=1,
        )
        return native_summary(await run_judge(judge, Answer(name="answer_1.md", text=text), tools), agent_name="a")

    observed = await observe(
        judged, answer, file=judge_file(source.encode(), path.suffix), page_text="", replies={}, refuted=frozenset()
    )
    return report(observed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lights.py"


async def test_correct_judge_has_no_findings(path: Path) -> None:
    found = await report_of(path, GOOD)

    assert (found.findings, found.exempt, found.notes) == ((), (), ())
    assert found.fields == 14
    assert found.leaves == 13


@dataclass(frozen=True)
class Broken:
    """An edit that breaks the judge: ``old`` becomes ``new``. The report must name ``code`` and ``subject``."""

    name: str
    old: str
    new: str
    code: FindingCode
    subject: str


KEEPER = 'f"{light.keeper} keeps {light.name}", sources=light.sources'
OPENED = 'f"The museum was opened in {found.museum.opened}", sources=found.museum.sources'
NAME = "light.name.casefold() == expected.casefold()"
MUSEUM = GOOD[GOOD.index("    museum = ctx") :]
BROKEN = [
    Broken("sources_dropped", KEEPER, KEEPER.partition(", sources")[0], FindingCode.ANSWER_ONLY, "light_0/keeper"),
    Broken("sources_empty", OPENED, OPENED.replace("found.museum.sources", "[]"),
           FindingCode.NO_SOURCES, "museum/opened"),
    Broken("first_source_only", KEEPER, f"{KEEPER}[:1]", FindingCode.CITATION_NOT_USED, "light_0/keeper"),
    Broken("always_the_first_item", "items[number]", "items[0]", FindingCode.SECTION_NOT_JUDGED, "lights[1]"),
    Broken("one_item_too_far", "[*found.lights, Light(), Light()][:2]", "[*found.lights, Light()][1:]",
           FindingCode.SECTION_NOT_JUDGED, "lights[0]"),
    Broken("sources_of_the_first_item", KEEPER, KEEPER.replace("light.sources", "items[0].sources"),
           FindingCode.WRONG_ITEM, "light_1/keeper"),
    Broken("sources_of_all_items", KEEPER, KEEPER.replace("light.sources", "[u for i in items for u in i.sources]"),
           FindingCode.WRONG_ITEM, "light_0/keeper"),
    Broken("value_of_the_first_item", KEEPER, KEEPER.replace("light.name", "items[0].name"),
           FindingCode.WRONG_ITEM, "light_1/keeper"),
    Broken("check_true", f'verify("opened", {OPENED})', 'check("opened", True)',
           FindingCode.CONSTANT_LEAF, "museum/opened"),
    Broken("check_of_a_text_that_is_never_empty", "light.name and light.keeper and light.built and light.sources",
           'f"{light.name} "', FindingCode.CONSTANT_LEAF, "light_0/given"),
    Broken("threshold_that_everything_meets", "visitors >= 400", "visitors >= -10**9",
           FindingCode.CONSTANT_LEAF, "visitors"),
    Broken("prefix_comparison", NAME, "light.name.startswith(expected)",
           FindingCode.PARTIAL_COMPARISON, "light_0/name"),
    Broken("prefix_comparison_reversed", NAME, "expected.startswith(light.name)",
           FindingCode.PARTIAL_COMPARISON, "light_0/name"),
    Broken("comparison_of_a_slice", NAME, "light.name[:5] == expected[:5]",
           FindingCode.PARTIAL_COMPARISON, "light_0/name"),
    Broken("year_inside_a_longer_number", "found.museum.opened and found.museum.curator",
           'found.museum.opened.startswith("193")', FindingCode.PARTIAL_COMPARISON, "museum/given"),
    Broken("hard_coded_source", OPENED, OPENED.replace("found.museum.sources", f"['{HOST}/museum']"),
           FindingCode.FIXED_SOURCES, "museum/opened"),
    Broken("hard_coded_source_besides", OPENED, OPENED.replace("found.museum.sources",
           f"[*found.museum.sources, '{HOST}/museum']"), FindingCode.FALLBACK_SOURCES, "museum/opened"),
    Broken("hard_coded_source_as_a_fallback", OPENED, f"{OPENED} or ['{HOST}/museum']",
           FindingCode.FALLBACK_SOURCES, "museum/opened"),
    Broken("answer_as_a_fallback", OPENED, f"{OPENED} or None", FindingCode.FALLBACK_SOURCES, "museum/opened"),
    Broken("claim_without_the_value", "opened in {found.museum.opened}", "opened long ago",
           FindingCode.ONLY_PRESENCE, "museum.opened"),
    Broken("expected_value_in_place_of_the_answers", "opened in {found.museum.opened}", "opened in 1931",
           FindingCode.ONLY_PRESENCE, "museum.opened"),
    Broken("section_never_judged", MUSEUM, "", FindingCode.SECTION_NOT_JUDGED, "museum"),
    Broken("section_never_extracted", MUSEUM + "|    museum: Museum = Museum()\n", "",
           FindingCode.SECTION_NOT_READ, "Museum"),
    Broken("value_compared_with_itself", "'Nesshead Light' are", "'{found.choice.oldest}' are",
           FindingCode.ANSWER_ONLY, "oldest"),
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
async def test_broken_judge_is_reported_with_its_leaf_or_field(path: Path, broken: Broken) -> None:
    source = GOOD
    for part in broken.old.split("|"):
        assert part in source
        source = source.replace(part, broken.new)

    found = await report_of(path, source)

    subjects = [(finding.code, subject) for finding in found.findings for subject in finding.subject.split(", ")]
    assert (broken.code, broken.subject) in subjects


async def test_finding_names_the_line_and_a_fix(path: Path) -> None:
    source = GOOD.replace(NAME, "light.name.startswith(expected)")
    (found,) = (await report_of(path, source)).findings

    assert source.splitlines()[(found.line or 0) - 1].strip().startswith('group.check("name"')
    assert "==" in found.fix
    assert "light_0/name, light_1/name" in found.subject


@pytest.mark.parametrize("before", [True, False], ids=["line_above", "same_line"])
async def test_leaf_with_an_untested_comment_is_exempt(path: Path, before: bool) -> None:
    line = '    museum.check("given", found.museum.opened and found.museum.curator)\n'
    comment = "# untested: every answer has a museum"
    fixed = '    museum.check("given", True)'
    new = f"    {comment}\n{fixed}\n" if before else f"{fixed}  {comment}\n"
    found = await report_of(path, GOOD.replace(line, new))

    assert found.findings == ()
    assert [(each.subject, each.exempt) for each in found.exempt] == [("museum/given", "every answer has a museum")]


async def test_exemption_without_a_reason_does_not_count(path: Path) -> None:
    source = GOOD.replace("    curator: str", "    founder: str = ''  # untested\n    curator: str")
    source = source.replace("{found.museum.curator} runs", "Somebody runs").replace(
        'curator: str = ""', 'curator: str = ""  # untested'
    )
    found = await report_of(path, source)
    assert [(finding.subject, finding.fix) for finding in found.findings] == [
        ("museum.curator", "Write a reason after `# untested:`.")
    ]


async def test_fields_that_are_not_part_of_the_task_can_be_exempt(path: Path) -> None:
    source = GOOD.replace("{found.museum.curator} runs", "Somebody runs").replace(
        'curator: str = ""', 'curator: str = ""  # untested: only shown to readers'
    )
    found = await report_of(path, source)
    assert (found.findings, [each.subject for each in found.exempt]) == ((), ["museum.curator"])


async def test_value_missing_in_the_answer_is_noted(path: Path) -> None:
    found = await report_of(path, GOOD, ANSWER.replace("- Curator: Ilse Marrow\n", ""))
    assert any("museum.curator" in note and "not tested" in note for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NAME, "expected.casefold() in light.name.casefold()"),
        ("visitors >= 400", "visitors in range(400, 500)"),
        ("found.choice.visitors >= 400", "abs(found.choice.visitors - 450) < 20"),
        (NAME, 'light.name.casefold().strip() in {"nesshead light", "skerry beacon"}'),
        (KEEPER, KEEPER.replace("light.keeper}", "light.keeper.strip().title()}")),
        (KEEPER, KEEPER.replace("sources=light.sources", "sources=light.sources[:8]")),
        ('museum.check("given"', 'museum.verify("asked", "The answer explains what the museum shows")\n'
         '    museum.check("given"'),
        ('museum.check("given"', 'museum.verify("page", "The page is about a museum", sources=found.museum.sources)\n'
         '    museum.check("given"'),
        ("ctx.check(\"visitors\"", 'ctx.check("allowed", found.choice.oldest != "Old Tower")\n'
         '    ctx.check("visitors"'),
    ],
)  # fmt: skip
async def test_correct_variants_have_no_findings(path: Path, old: str, new: str) -> None:
    assert old in GOOD
    found = await report_of(path, GOOD.replace(old, new))
    assert found.findings == ()


@pytest.mark.parametrize("sources", ["sources", f"'{HOST}/museum'"])
async def test_claim_without_its_value_is_reported_with_the_score_only(tmp_path: Path, sources: str) -> None:
    task = f"""\
format: 1
description: When was the museum opened, and how many rooms does it have?
fields: {{opened: , rooms: number of rooms, sources: {{list_of: url}}}}
rubric:
  parallel:
    opened: {{claim: "The museum was opened in {{opened}}", sources: sources}}
    rooms: {{claim: "Rooms {{rooms}} in all", sources: {sources}}}
"""
    found = await report_of(tmp_path / "museum.yaml", task)
    assert (found.findings, found.unmoved) == ((), ())
    assert [note for note in found.notes if "rooms" in note] == ["not tested, because the answer gives no value: rooms"]
