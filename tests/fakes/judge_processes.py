"""Task files in child processes, with a fixed model and fixed pages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from answers.submission import Answer
from cache.blobs import BlobStore
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from judges.isolation.fork_server_pool import ForkServerPool
from judges.isolation.judge_job import judge_isolated
from judges.isolation.process_limits import ScriptLimits
from judges.isolation.rpc_server import JudgeJob
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.loader import load_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from mind2web2.host import PRELOADED, run_script
from mind2web2.task_pages import TaskPages
from rubrics.verdict import Usage
from tests.compat.fixed_pages import FixedPages

BLOCK_BUILDER = BlockBuilder(b"the secret of a test")
PAGE = "https://shop.example/one"
SCRIPT = """
    import asyncio, os, sys, time
    from mind2web2 import Evaluator
    {above}
    async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="gpt-6-luna"):
        evaluator = Evaluator()
        root = evaluator.initialize(task_id="t", agent_name=agent_name, answer_name=answer_name, client=client,
            answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model)
        leaf = evaluator.add_leaf("leaf", "A leaf")
        await evaluator.verify("The lamp is green", leaf, "https://shop.example/one")
    {body}
        return evaluator.get_summary()
"""


class SupportingLLM:
    """Model that supports every claim and fills every form with ``values``; ``requests`` records its requests."""

    def __init__(self, values: Callable[[LLMRequest], Any] | None = None) -> None:
        self._values = values or (lambda request: {})
        self.requests: list[LLMRequest] = []

    async def complete(self, request: LLMRequest) -> LLMReply:
        self.requests.append(request)
        is_verdict = request.schema_name == "BinaryEvalResult"
        said = {"reasoning": "", "result": True} if is_verdict else self._values(request)
        text = json.dumps(said)
        parsed = None if request.reply_class is None else request.reply_class.model_validate_json(text)
        return LLMReply(text=text, parsed=parsed, model=request.model, usage=Usage(calls=1, input_tokens=3))

    async def aclose(self) -> None: ...


def script(folder: Path, body: str = "pass", *, above: str = "", name: str = "t") -> Path:
    """Write a public task script whose coroutine runs ``body`` (indented once) after its only claim."""
    path = folder / f"{name}.py"
    path.write_text(dedent(SCRIPT).format(body=_indented(body), above=dedent(above)), "utf-8")
    return path


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in dedent(body).splitlines())


@asynccontextmanager
async def open_process_pool(**limits: int) -> AsyncIterator[ForkServerPool]:
    process_pool = ForkServerPool(PRELOADED, limits=ScriptLimits(**limits))
    try:
        await process_pool.wait_until_running()
        yield process_pool
    finally:
        await process_pool.aclose()


async def run_public_script(
    path: Path, process_pool: ForkServerPool | None, *, llm: LLMClient | None = None, answer: str = "x", **more: Any
) -> dict[str, Any]:
    """Return the result of a public script."""
    return await run_loaded_script(load_judge(path), process_pool, llm=llm, answer=answer, **more)


async def run_loaded_script(
    judge: Judge, process_pool: ForkServerPool | None, *, llm: LLMClient | None = None, answer: str = "x", **more: Any
) -> dict[str, Any]:
    """Return the result of a judge that is already loaded."""
    blobs = BlobStore.open("memory://")
    pages = PageCache(FixedPages({PAGE: "The lamp on this page is green."}), blobs, MemoryIndex())
    job = job_of(judge, llm or SupportingLLM(), pages, blobs, answer, **more)
    return await run_script(job, TaskPages(pages, [await pages.get(PAGE)], None), process_pool)


def job_of(judge: Judge, llm: LLMClient, pages: PageCache, blobs: BlobStore, answer: str, **more: Any) -> JudgeJob:
    """Return a job for ``run_script`` and ``judge_isolated``."""
    return JudgeJob(
        **{
            "judge": judge,
            "answer": Answer(name="answer_1.md", text=answer),
            "agent": "me",
            "model": "gpt-6-luna",
            "llm": llm,
            "block_builder": BLOCK_BUILDER,
            "preparer": PagePreparer(BLOCK_BUILDER),
            "evidence_for": pages.evidence_for,
            "bodies": blobs,
            **more,
        }
    )


async def run_native_judge(
    path: Path, process_pool: ForkServerPool, *, llm: LLMClient | None = None, answer: str = "x"
) -> Any:
    """Return the judgement of a native task file."""
    blobs = BlobStore.open("memory://")
    pages = PageCache(FixedPages({PAGE: f"The lamp on this page is green. See {PAGE}/more"}), blobs, MemoryIndex())
    job = job_of(load_judge(path, importing=False), llm or SupportingLLM(), pages, blobs, answer, deadline_s=300)
    return await judge_isolated(process_pool, job)
