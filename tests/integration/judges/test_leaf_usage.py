"""The usage of each leaf depends neither on the number of workers nor on the order of replies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any, Literal, get_args

import pytest
import pytest_asyncio

from answers.submission import Answer
from judges.extractor import Extractor
from judges.isolation.fork_server_pool import ForkServerPool
from judges.llm.cached import FolderReplyCache
from judges.llm.client import LLMClient
from judges.llm.provider_adapter import Access
from judges.llm.providers import make_client
from judges.loader import load_judge
from judges.prompting.page_view import PagePreparer
from judges.result import native_summary
from judges.runner import JudgeTools, run_judge
from judges.verifier import Verifier
from rubrics.verdict import Usage
from tests.fakes.judge_processes import (
    BLOCK_BUILDER,
    PAGE,
    open_process_pool,
    run_native_judge,
    run_public_script,
    script,
)
from tests.fakes.pages import FixedEvidence, page
from tests.standin.call import Call
from tests.standin.faults import Fault
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.asyncio(loop_scope="module")

Kind = Literal["native", "script"]
TEXT = "The lamp on this page is green."
NATIVE = f"""
    from judges.registry import judge

    @judge(task="lamp", description="The lamp.")
    async def lamp(ctx):
        for n in range(2):
            chain = ctx.sequential(f"chain{{n}}", f"Chain {{n}}")
            chain.verify("gate", f"Gate {{n}} is open", critical=True)
            chain.verify("shared", "The lamp is blue", sources=[{PAGE!r}])
        ctx.verify("early", "The lamp is blue", sources=[{PAGE!r}])
"""
SCRIPT = f"""
    async def chain(n):
        gate, shared = evaluator.add_leaf(f"gate{{n}}", "A gate"), evaluator.add_leaf(f"shared{{n}}", "Shared")
        await evaluator.verify(f"Gate {{n}} is open", gate)
        await evaluator.verify("The lamp is blue", shared, {PAGE!r})

    async def early():
        leaf = evaluator.add_leaf("early", "Judged at once")
        await evaluator.verify("The lamp is blue", leaf, {PAGE!r})

    await asyncio.gather(chain(0), chain(1), early(), evaluator.verify("The lamp is blue", None, {PAGE!r}))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process_pool() -> AsyncIterator[ForkServerPool]:
    async with open_process_pool() as opened:
        yield opened


@pytest.mark.parametrize("confines", [False, True])
@pytest.mark.parametrize("kind", get_args(Kind))
async def test_leaves_with_shared_requests_have_deterministic_usage(
    tmp_path: Path, process_pool: ForkServerPool, kind: Kind, confines: bool
):
    seen, totals = [], set()
    for limit in (1, 30):
        for seed in range(2):
            store = FolderReplyCache(tmp_path / f"{limit}-{seed}")
            async with StandInLLM(fault_for=_slow(random.Random(seed))) as server:
                summary, total = await _judged(kind, tmp_path, server, store, limit, process_pool if confines else None)
            leaves = {leaf["id"]: (Usage(**leaf["usage"]), _cached(leaf)) for leaf in _leaves(summary)}
            seen.append(leaves)
            totals.add((total.calls, total.cached_calls))
            assert total.calls == len(server.calls)
            if kind == "native":
                assert sum((usage for usage, _ in leaves.values()), Usage()) == total
    assert all(leaves == seen[0] for leaves in seen)
    assert len(totals) == 1
    shared = [found for leaf, found in seen[0].items() if "shared" in leaf or leaf == "early"]
    assert [(usage.calls > 0, usage.cached_calls > 0) for usage, _ in shared] == [(True, False), *[(False, True)] * 2]
    assert [set(cached) for _, cached in shared] == [{False}, {True}, {True}]


async def _judged(
    kind: Kind,
    folder: Path,
    server: StandInLLM,
    store: FolderReplyCache,
    limit: int,
    process_pool: ForkServerPool | None,
) -> tuple[Mapping[str, Any], Usage]:
    llm, _ = make_client(
        "openai/o4-mini",
        access=Access(openai_api_key="sk-test", openai_base_url=server.base_url),
        semaphore=asyncio.Semaphore(limit),
        store=store,
    )
    try:
        if kind != "native":
            result = await run_public_script(script(folder, SCRIPT), process_pool, llm=llm)
            return result, Usage(**result["usage"])
        path = folder / "lamp.py"
        path.write_text(dedent(NATIVE), "utf-8")
        if process_pool is not None:
            judgement = await run_native_judge(path, process_pool, llm=llm)
            return judgement.summary, judgement.usage
        return await _in_process(path, llm)
    finally:
        await llm.aclose()


async def _in_process(
    path: Path, llm: LLMClient, texts: Mapping[str, str] = MappingProxyType({PAGE: TEXT})
) -> tuple[Mapping[str, Any], Usage]:
    pages = PagePreparer(BLOCK_BUILDER)
    tools = JudgeTools(
        verifier=Verifier(llm, "o4-mini", block_builder=BLOCK_BUILDER, pages=pages),
        extractor=Extractor(llm, "o4-mini", block_builder=BLOCK_BUILDER, pages=pages),
        evidence_for=FixedEvidence({url: page(url, text) for url, text in texts.items()}),
    )
    judgement = await run_judge(load_judge(path), Answer(name="answer_1.md", text="x"), tools)
    return native_summary(judgement, agent_name="me"), judgement.usage


def _slow(draw: random.Random, *, shuffled: bool = False) -> Any:
    """Return replies after random delays. With ``shuffled``, each page has an additional delay, so that the order of
    pages is random too."""
    by_page: dict[str, float] = {}

    def fault_for(call: Call) -> Fault:
        base = by_page.setdefault(call.page, draw.uniform(0.0, 0.05)) if shuffled else 0.0
        return Fault(delay_s=base + draw.uniform(0.0, 0.03))

    return fault_for


def _leaves(summary: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = [summary["eval_breakdown"][0]["verification_tree"]]
    while pending:
        node = pending.pop(0)
        pending = [*node["children"], *pending]
        if not node["children"]:
            yield node


def _cached(leaf: Mapping[str, Any]) -> list[bool]:
    return [vote["cached"] for vote in leaf["votes"]]
