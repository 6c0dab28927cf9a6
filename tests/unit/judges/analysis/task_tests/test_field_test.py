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
from judges.analysis.task_tests.field_test import observe
from judges.analysis.task_tests.findings import FieldReport, FindingCode, report
from judges.analysis.task_tests.judge_file import judge_file
from judges.extractor import Extractor
from judges.llm.client import LLMClient
from judges.llm.lexical import LexicalClient
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.result import native_summary
from judges.runner import JudgeTools, run_judge
from judges.text_pages import evidence_of
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

    file = judge_file(source.encode(), path.suffix)
    observed = await observe(judged, answer, file=file, page_text="", replies={})
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
    Broken("sources_of_the_first_item", KEEPER, KEEPER.replace("light.sources", "items[0].sources"),
           FindingCode.WRONG_ITEM, "light_1/keeper"),
    Broken("check_true", f'verify("opened", {OPENED})', 'check("opened", True)',
           FindingCode.CONSTANT_LEAF, "museum/opened"),
    Broken("prefix_comparison", NAME, "light.name.startswith(expected)",
           FindingCode.PARTIAL_COMPARISON, "light_0/name"),
    Broken("hard_coded_source", OPENED, OPENED.replace("found.museum.sources", f"['{HOST}/museum']"),
           FindingCode.FIXED_SOURCES, "museum/opened"),
    Broken("hard_coded_source_besides", OPENED, OPENED.replace("found.museum.sources",
           f"[*found.museum.sources, '{HOST}/museum']"), FindingCode.FALLBACK_SOURCES, "museum/opened"),
    Broken("claim_without_the_value", "opened in {found.museum.opened}", "opened long ago",
           FindingCode.ONLY_PRESENCE, "museum.opened"),
    Broken("section_never_extracted", MUSEUM + "|    museum: Museum = Museum()\n", "",
           FindingCode.SECTION_NOT_READ, "Museum"),
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


@pytest.mark.parametrize("before", [True, False], ids=["line_above", "same_line"])
async def test_leaf_with_an_untested_comment_is_exempt(path: Path, before: bool) -> None:
    line = '    museum.check("given", found.museum.opened and found.museum.curator)\n'
    comment = "# untested: every answer has a museum"
    fixed = '    museum.check("given", True)'
    new = f"    {comment}\n{fixed}\n" if before else f"{fixed}  {comment}\n"
    found = await report_of(path, GOOD.replace(line, new))

    assert found.findings == ()
    assert [(each.subject, each.exempt) for each in found.exempt] == [("museum/given", "every answer has a museum")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NAME, "expected.casefold() in light.name.casefold()"),
        ("found.choice.visitors >= 400", "abs(found.choice.visitors - 450) < 20"),
        (KEEPER, KEEPER.replace("light.keeper}", "light.keeper.strip().title()}")),
        ('museum.check("given"', 'museum.verify("asked", "The answer explains what the museum shows")\n'
         '    museum.check("given"'),
    ],
)  # fmt: skip
async def test_correct_variants_have_no_findings(path: Path, old: str, new: str) -> None:
    assert old in GOOD
    found = await report_of(path, GOOD.replace(old, new))
    assert found.findings == ()
