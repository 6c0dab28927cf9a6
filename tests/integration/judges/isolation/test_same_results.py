"""Judge files have the same results in a child process as in-process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import pytest_asyncio

from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.errors import LLMUnavailable
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.json_schema import ReplySchema, json_schema_of
from judges.trial import try_judge
from rubrics.verdict import Usage
from tests.compat.fixed_pages import FixedPages
from tests.compat.script_cases import CASES, PAGES, Case
from tests.compat.test_scripts import BLOBS, Hosted, run_hosted, tree_of
from tests.fakes.judge_processes import (
    PAGE,
    SupportingLLM,
    open_process_pool,
    run_native_judge,
    run_public_script,
    script,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool() as opened:
        yield opened


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_scripts_build_the_expected_trees(case: Case, process_pool: ForkServerPool):
    cache = page_cache()
    captures = [await cache.get(url) for url in PAGES]
    result = await run_hosted(case.path, Hosted(case), cache, case.answer, captures, process_pool=process_pool)
    assert tree_of(result) == case.tree
    assert result["final_score"] == case.final_score
    assert result["status"] == "complete"


async def test_script_can_send_model_requests(process_pool: ForkServerPool, tmp_path: Path):
    above = """
        from pydantic import BaseModel, field_validator
        class Colour(BaseModel):
            name: str
            shade: int = 3
            @field_validator("name")
            @classmethod
            def small(cls, value):
                if value != value.lower():
                    raise ValueError("not small")
                return value
    """
    body = """
        said = await client.async_response(model=model, messages=[{"role": "user", "content": "Which?"}],
            response_format=Colour, count_token=True)
        evaluator.add_custom_info({"colour": said[0].name, "shade": said[0].shade, "tokens": said[1]})
    """
    answers = iter([{"name": "GREEN"}, {"name": "green"}])
    model = SupportingLLM(lambda request: next(answers))
    result = await run_public_script(script(tmp_path, body, above=above), process_pool, llm=model)
    info = next(each["custom"] for each in result["eval_breakdown"][0]["info"] if "custom" in each)
    assert (info["colour"], info["shade"]) == ("green", 3)
    # The first reply failed the validator of the script's class, so the model got one repair request.
    asked = [request for request in model.requests if request.schema is not None and request.purpose == "free"]
    assert [len(request.messages) for request in asked] == [1, 2]
    assert isinstance(asked[0].schema, ReplySchema) and asked[0].schema_name == "Colour"
    assert json_schema_of(asked[0].schema)["properties"].keys() == {"name", "shade"}


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("await {}", "failed"),
        ("[right] = await asyncio.gather({})", "not_judged"),
    ],
)
async def test_check_is_not_judged_only_if_the_script_used_a_result_after_a_fault(
    statement: str, outcome: str, process_pool: ForkServerPool, tmp_path: Path
):
    class Down(SupportingLLM):
        async def complete(self, request: LLMRequest) -> LLMReply:
            raise LLMUnavailable("down", usage=Usage(calls=1))

    call = 'evaluator.verify("The lamp is red", evaluator.add_leaf("lamp", "The lamp"))'
    body = f"""
        import asyncio
        right = False
        {statement.format(call)}
        evaluator.add_custom_node(right, "follows", "What follows", critical=False)
    """
    result = await run_public_script(script(tmp_path, body), process_pool, llm=Down())
    tree = result["eval_breakdown"][0]["verification_tree"]
    assert next(child for child in tree["children"] if child["id"] == "follows")["outcome"] == outcome


NATIVE = """
from pydantic import BaseModel
from judges.registry import judge

class Found(BaseModel):
    name: str | None = None
    url: str | None = None

@judge(task="lamps", description="Is the lamp green?")
async def lamps(ctx):
    found = await ctx.extract(Found, "What is it called, and where?")
    on_page = await ctx.extract(Found, "What does the page say?", source="https://shop.example/one", name="on page")
    ctx.check("named", found.name, critical=True)
    ctx.check("invented", found.url is None)
    ctx.check("kept", on_page.url)
    first = ctx.verify("green", "The lamp is green", "https://shop.example/one")
    if await ctx.settle(first):
        ctx.verify("sold", "The lamp is sold", "https://gone.example/")
"""


async def test_native_judge_runs_in_child_process(process_pool: ForkServerPool, tmp_path: Path):
    path = tmp_path / "lamps.py"
    path.write_text(dedent(NATIVE))

    def values(request: LLMRequest) -> Any:
        on_page = "page" in request.parts
        return {"name": "Lux", "url": f"{PAGE}/more" if on_page else "https://invented.example/"}

    judged = await run_native_judge(path, process_pool, llm=SupportingLLM(values))
    leaves = {each["id"]: each for each in judged.summary["eval_breakdown"][0]["verification_tree"]["children"]}
    assert {name: leaf["outcome"] for name, leaf in leaves.items()} == {
        "named": "passed", "invented": "passed", "kept": "passed", "green": "passed", "sold": "failed",
    }  # fmt: skip
    assert leaves["sold"]["reason"] == "source_gone"
    assert judged.usage.calls == 4
    assert judged.prompts


YAML = f"""
format: 1
description: Which lamp?
fields:
  name: name of the lamp
  url:
rubric:
  sequential:
    named: {{check: "matches(name, '[A-Z][a-z]+')"}}
    green: {{claim: "The lamp {{name}} is green", sources: [url, {PAGE}], requires: [named]}}
"""


async def test_yaml_task_has_the_same_result_in_a_child_process(process_pool: ForkServerPool, tmp_path: Path):
    path = tmp_path / "lamps.yaml"
    path.write_text(YAML)
    answer = f"Name: Lux\nURL: {PAGE}\n"

    here = await try_judge(path, answer, {PAGE: f"The lamp on this page is green. See {PAGE}/more. The lamp is Lux."})
    there = await run_native_judge(
        path, process_pool, llm=SupportingLLM(lambda _: {"name": "Lux", "url": PAGE}), answer=answer
    )

    tree = there.summary["eval_breakdown"][0]["verification_tree"]
    claims = [(leaf["id"], leaf["claim"], leaf["sources"], leaf["outcome"]) for leaf in tree["children"]]
    expected = [
        (leaf.id, leaf.claim and leaf.claim.text, leaf.claim and list(leaf.claim.sources or ()), "passed")
        for leaf in here.rubric.leaves()
    ]
    assert claims == expected
    assert tree["strategy"] == "sequential"


def page_cache() -> PageCache:
    return PageCache(FixedPages({url: f"The page at {url} sells lamps." for url in PAGES}), BLOBS, MemoryIndex())
