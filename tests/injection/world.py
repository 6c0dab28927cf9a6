"""The real path from a URL to a verdict, with a stand-in web server and a stand-in judge.

Pages are fetched through the egress proxy, stored, loaded and hash-checked by the page cache. A native judge with one
claim runs on them, and the rubric is scored as usual.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from answers.submission import Answer
from cache.backends.http import HttpCapturer
from cache.blobs import BlobStore
from cache.capture import Capturer
from cache.capture_index import MemoryIndex
from cache.egress.proxy import EgressProxy
from cache.pages import PageCache
from judges.context import JudgeContext
from judges.extractor import Extractor
from judges.llm.client import LLMClient, LLMRequest
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import Question, Style, render_claim
from judges.registry import MARK, judge
from judges.runner import Judgement, JudgeTools, run_judge
from judges.verifier import Verifier
from tests.injection.material import HOST, Material, Site
from tests.injection.reading import read_request
from tests.standin.web import StandInWeb

TRIALS = 5
BLOCK_BUILDER = BlockBuilder(b"the secret of this installation")


class LoopbackResolver:
    """Resolver that maps every host to this machine."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    def close(self) -> None:
        """Do nothing, because nothing is open."""


@dataclass(frozen=True)
class World:
    web: StandInWeb
    cache: PageCache
    preparer: PagePreparer

    @property
    def site(self) -> Site:
        return Site(port=self.web.port)

    async def judge(self, material: Material, llm: LLMClient, style: Style) -> Judgement:
        """Judge the material with the real runner, verifier, extractor and page cache."""
        tools = JudgeTools(
            verifier=Verifier(llm, "stand-in", block_builder=BLOCK_BUILDER, pages=self.preparer, style=style),
            extractor=Extractor(llm, "stand-in", block_builder=BLOCK_BUILDER, pages=self.preparer, style=style),
            evidence_for=self.cache.evidence_for,
            trials=TRIALS,
        )
        return await run_judge(
            getattr(_rubric_of(material), MARK), Answer(name="answer_1.md", text=material.answer), tools
        )


def http_capturer(proxy: EgressProxy) -> Capturer:
    return HttpCapturer(proxy, semaphore=asyncio.Semaphore(4))


@asynccontextmanager
async def open_world(capturer: Callable[[EgressProxy], Capturer] = http_capturer) -> AsyncIterator[World]:
    """Open a separate world with a stand-in web server."""
    async with (
        StandInWeb() as web,
        EgressProxy(frozenset({f"{HOST}:{web.port}"}), resolver=LoopbackResolver()) as proxy,
    ):
        pages = PageCache(capturer(proxy), BlobStore.open("memory://"), MemoryIndex())
        try:
            yield World(web, pages, PagePreparer(BLOCK_BUILDER))
        finally:
            await pages.aclose()


def strictly_supported(judgement: Judgement) -> bool:
    """Return whether the claim counts in the strict score."""
    return judgement.score_strict.low == 1.0


def nonce_of_another_run(material: Material) -> str:
    """Return a nonce that this installation has used before for a text that is also in this prompt: for the claim if
    the attack is in the answer, for the answer if it is in a page.
    """
    question = Question(task=material.case.scenario.task, answer=material.answer, claim=material.claim)
    rendered = render_claim(question, BLOCK_BUILDER, Style.NATIVE)
    request = LLMRequest(model="stand-in", messages=rendered.messages, prompt=rendered.prompt)
    label = "claim" if material.place in {"answer", "alone"} else "answer"
    return next(block.nonce for block in read_request(request).blocks if block.label == label)


def _rubric_of(material: Material) -> object:
    """Return the coroutine that a task file for this material would contain."""

    @judge(task="injection", description=material.case.scenario.task)
    async def one_claim(ctx: JudgeContext) -> None:
        ctx.verify("fact", material.claim, material.sources, critical=True)

    return one_claim
