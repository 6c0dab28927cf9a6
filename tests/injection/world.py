"""The real path from a URL to a verdict, with a stand-in web server and a stand-in judge.

Pages are fetched through the egress proxy, stored, loaded and hash-checked by the page cache. A native judge with one
claim runs on them, and the rubric is scored as usual.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import BaseModel, Field

from answers.submission import Answer
from cache.backends.http import HttpCapturer
from cache.blobs import BlobStore
from cache.capture import Capturer
from cache.capture_index import MemoryIndex
from cache.egress.proxy import EgressProxy
from cache.errors import CacheError
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
from tests.injection.material import Material, Site
from tests.injection.reading import read_request
from tests.injection.sources import HOSTS
from tests.standin.web import StandInWeb

TRIALS = 5
BLOCK_BUILDER = BlockBuilder(b"the secret of this installation")


class FurtherItem(BaseModel):
    name: str
    detail: str = ""


class ExtractedFact(BaseModel):
    """Extraction of class M from an answer."""

    statement: str | None = None
    subject: str | None = None
    urls: list[str] = Field(default_factory=list)
    further: list[FurtherItem] = Field(default_factory=list)


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

    async def picture_texts(self, material: Material) -> dict[str, str]:
        """Return the text of each picture of a material's pages, by its SHA-256."""
        said: dict[str, str] = {}
        for url in material.sources or ():
            try:
                evidence = await self.cache.evidence_for(url)
            except CacheError:
                continue
            said |= {hashlib.sha256(shot).hexdigest(): material.pictured for shot in evidence.screenshots}
        return said


def http_capturer(proxy: EgressProxy) -> Capturer:
    return HttpCapturer(proxy, semaphore=asyncio.Semaphore(4))


@asynccontextmanager
async def open_world(capturer: Callable[[EgressProxy], Capturer] = http_capturer) -> AsyncIterator[World]:
    """Open a separate world in which one stand-in server serves every host of ``HOSTS``."""
    async with StandInWeb() as web:
        places = frozenset(f"{host}:{web.port}" for host in HOSTS)
        async with EgressProxy(places, resolver=LoopbackResolver()) as proxy:
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
        if material.place != "extraction":
            ctx.verify("fact", material.claim, material.sources, critical=True)
            return
        found = await ctx.extract(
            ExtractedFact, "Read the statement, what it is about, its sources, and further items."
        )
        ctx.check("given", found.statement and found.subject, critical=True)
        ctx.verify("fact", found.statement or "nothing was stated", found.urls, critical=True)
        for number, item in enumerate(found.further):
            ctx.verify(f"further_{number}", f"{item.name}: {item.detail}", found.urls, critical=True)

    return one_claim
