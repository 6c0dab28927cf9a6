"""Judging of texts for tests of tasks: a judge as a function of an answer text, and pages given as texts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from answers.submission import Answer
from app.engine.pipeline import JudgingCase, evaluate
from app.engine.runtime import Runtime
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, Observation
from cache.capture_index import MemoryIndex
from cache.errors import CacheError
from cache.pages import PageCache
from cache.urls import canonical_key
from judges.llm.client import LLMClient
from judges.registry import Judge
from judges.text_pages import CAPTURED_AT

AGENT, ANSWER = "task-test", "answer_1.md"
JudgeText: TypeAlias = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Judges the text of an answer and returns the result."""


class TextCapturer:
    """``Capturer`` that serves given texts by URL.

    All other URLs have the text ``default_text``, or return 404 if it is None.
    """

    def __init__(self, texts: Mapping[str, str], default_text: str | None = None) -> None:
        self._texts = {canonical_key(url): text for url, text in texts.items()}
        self._default_text = default_text

    async def capture(self, url: str) -> Observation:
        text = self._texts.get(canonical_key(url), self._default_text)
        return Observation(
            url=url,
            outcome=CaptureOutcome.HTTP_ERROR if text is None else CaptureOutcome.OK,
            captured_at=CAPTURED_AT,
            duration_s=0.0,
            backend="texts",
            http_status=404 if text is None else 200,
            text=text or "",
            gone=text is None,
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


@asynccontextmanager
async def runtime_with_pages(
    runtime: Runtime, texts: Mapping[str, str], default_text: str | None = None
) -> AsyncIterator[Runtime]:
    """Yield the runtime with these pages, stored in memory. ``default_text`` as for ``TextCapturer``."""
    blobs, index = BlobStore.open("memory://"), MemoryIndex()
    pages = PageCache(TextCapturer(texts, default_text), blobs, index)
    try:
        yield replace(runtime, pages=pages, blobs=blobs, index=index)
    finally:
        await pages.aclose()


def text_judge(
    runtime: Runtime, judge: Judge, model: str, wrap_client: Callable[[LLMClient], LLMClient] = lambda client: client
) -> JudgeText:
    """Return a function that judges an answer text with the whole pipeline. It stores no result."""

    async def judged(text: str) -> dict[str, Any]:
        answer, result_id = Answer(name=ANSWER, text=text), runtime.ids.new("res")
        case = JudgingCase(judge=judge, agent=AGENT, answer=answer, model=model, result_id=result_id)
        return await evaluate(runtime, case, wrap_client=wrap_client)

    return judged


async def texts_of(runtime: Runtime, urls: Iterable[str]) -> dict[str, str]:
    """Return the texts of the pages that are evidence, by URL."""
    texts = {}
    for url in urls:
        try:
            texts[url] = (await runtime.pages.evidence_for(url)).text
        except CacheError:
            continue
    return texts
