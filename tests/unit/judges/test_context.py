from __future__ import annotations

import pytest
from pydantic import BaseModel

from answers.submission import Answer
from judges.context import JudgeContext
from judges.errors import ExtractionFailed
from rubrics.node import RubricNode, Strategy
from rubrics.rubric import InvalidNode, Rubric, UnknownNode
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
        settling=settling or FakeSettling(),
    )


def test_node_ids_are_paths():
    ctx = context()
    leaf = ctx.sequential("lineage", "The chain").parallel("g1", "First").check("given", True)
    assert leaf.id == "lineage/g1/given"
    assert ctx.check("top", True).id == "top"


def test_groups_store_strategy_weight_and_critical_flag():
    ctx = context()
    chain = ctx.sequential("chain", "d", critical=True, weight=3)
    assert (chain.node.strategy, chain.node.critical, chain.node.weight) == (Strategy.SEQUENTIAL, True, 3)
    assert ctx.parallel("side", "d").node.strategy is Strategy.PARALLEL


@pytest.mark.parametrize(("value", "check"), [("x", True), ("", False), (None, False), ([0], True), (0, False)])
def test_check_is_the_truth_value_of_its_argument(value: object, check: bool):
    assert context().check("given", value).node.check is check


def test_check_description_defaults_to_its_id():
    ctx = context()
    assert ctx.check("both_given", True).node.desc == "both given"
    assert ctx.check("b", True, "Both are there").node.desc == "Both are there"


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (None, None),
        ([], ()),
        ("", ()),
        ("https://a.example/", ("https://a.example/",)),
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


def test_source_without_scheme_is_accepted_as_url():
    claim = context().verify("v", "So it is", "www.velm.example/ida").node.claim
    assert claim is not None and claim.sources is not None
    assert claim.sources[0].endswith("www.velm.example/ida")


def test_claim_stores_text_instruction_and_prerequisites():
    ctx = context()
    first, group = ctx.check("first", True), ctx.parallel("group", "d")
    node = ctx.verify("v", "So it is", instruction="strictly", requires=[first, group]).node
    assert (node.desc, node.requires) == ("So it is", ("first", "group"))
    assert node.claim is not None and (node.claim.text, node.claim.instruction) == ("So it is", "strictly")


@pytest.mark.parametrize("requires", ["first", ["first"]])
def test_prerequisite_can_be_named_by_id(requires):
    ctx = context()
    ctx.check("first", True)
    assert ctx.verify("v", "x", requires=requires).node.requires == ("first",)


def test_prerequisite_can_be_a_single_node():
    ctx = context()
    assert ctx.verify("v", "x", requires=ctx.check("first", True)).node.requires == ("first",)


def test_unknown_prerequisite_raises():
    with pytest.raises(UnknownNode):
        context().verify("v", "x", requires="nowhere")


@pytest.mark.parametrize("id", ["", "a/b"])
def test_id_that_is_empty_or_contains_a_slash_is_rejected(id: str):
    with pytest.raises(InvalidNode, match="slash"):
        context().check(id, True)


def test_duplicate_id_is_rejected():
    ctx = context()
    ctx.check("a", True)
    with pytest.raises(InvalidNode, match="in use"):
        ctx.verify("a", "x")


def test_critical_group_rejects_non_critical_children():
    with pytest.raises(InvalidNode, match="critical"):
        context().parallel("g", "d", critical=True).check("c", True)


async def test_extract_passes_all_arguments_on():
    reading = FakeReading(Values(name="Ida"))
    found = await context(reading).extract(Values, "The name", source="https://a.example/", instruction="i", name="who")
    assert found == Values(name="Ida")
    assert reading.asked == [(Values, "The name", "https://a.example/", "i", "who")]


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


async def test_settle_accepts_leaves_and_groups():
    settling = FakeSettling()
    ctx = context(settling=settling)
    leaf, group = ctx.check("a", True), ctx.parallel("g", "d")
    assert await ctx.settle(leaf)
    assert await ctx.settle(group)
    assert settling.settled == ["a", "g"]
