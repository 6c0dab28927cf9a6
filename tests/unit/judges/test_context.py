from __future__ import annotations

import pytest
from pydantic import BaseModel

from answers.submission import Answer
from judges.context import JudgeContext
from judges.errors import ExtractionFailed
from rubrics.rubric import InvalidNode, Rubric
from rubrics.tree import RubricNode
from rubrics.verdict import Outcome, Reason


class Values(BaseModel):
    name: str = ""


class FakeReading:
    """Returns the given value or raises it."""

    def __init__(self, value: BaseModel | ExtractionFailed) -> None:
        self._value = value
        self.asked: list[tuple[object, ...]] = []

    async def read(self, schema, prompt, *, source, instruction, name):
        self.asked.append((schema, prompt, source, instruction, name))
        if isinstance(self._value, ExtractionFailed):
            raise self._value
        return self._value


class FakeSettling:
    def __init__(self) -> None:
        self.settled: list[str] = []

    async def settle(self, node: RubricNode) -> bool:
        self.settled.append(node.id)
        return True


def context(reading: FakeReading | None = None, settling: FakeSettling | None = None) -> JudgeContext:
    return JudgeContext(
        rubric=Rubric("t", "The task"),
        task="The task",
        answer=Answer(name="answer_1.md", text="The answer."),
        reading=reading or FakeReading(Values()),
        settling=(settling or FakeSettling()).settle,
    )


def test_node_ids_are_paths():
    ctx = context()
    leaf = ctx.sequential("lineage", "The chain").parallel("g1", "First").check("given", True)
    assert leaf.id == "lineage/g1/given"
    assert ctx.check("top", True).id == "top"


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (None, None),
        ([], ()),
        (
            ["https://a.example/", None, " ", "https://b.example/", "https://a.example/"],
            ("https://a.example/", "https://b.example/"),
        ),
        (["N/A", "see above", "none"], ()),
        ("[the page](https://a.example/p)", ("https://a.example/p",)),
    ],
)
def test_sources_are_the_urls_among_the_given_values(given, sources: tuple[str, ...] | None):
    claim = context().verify("v", "So it is", given).node.claim
    assert claim is not None
    assert claim.sources == sources


def test_claim_stores_text_instruction_and_prerequisites():
    ctx = context()
    first, group = ctx.check("first", True), ctx.parallel("group", "d")
    node = ctx.verify("v", "So it is", instruction="strictly", requires=[first, group]).node
    assert (node.desc, node.requires) == ("So it is", ("first", "group"))
    assert node.claim is not None and (node.claim.text, node.claim.instruction) == ("So it is", "strictly")


def test_id_that_is_empty_or_contains_a_slash_is_rejected():
    with pytest.raises(InvalidNode, match="slash"):
        context().check("a/b", True)


async def test_nodes_declared_after_a_failed_extraction_are_not_judged():
    ctx = context(FakeReading(ExtractionFailed("extraction failed: 503")))
    before = ctx.check("before", True)
    with pytest.raises(ExtractionFailed):
        await ctx.extract(Values, "x")
    group = ctx.parallel("g", "d")
    leaves = [group.check("empty", ""), group.verify("v", "x", [])]
    assert before.verdict is None
    for leaf in leaves:
        assert leaf.verdict is not None
        assert (leaf.verdict.outcome, leaf.verdict.reason) == (Outcome.NOT_JUDGED, Reason.EXTRACTION_FAILED)
