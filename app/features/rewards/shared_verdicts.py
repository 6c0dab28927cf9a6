"""Verdicts that the answers of one process share: those on equal claims about the same capture of a page.

The reply cache already shares the replies of the model, across processes and restarts. Sharing the verdict also saves
loading the page, rendering the claim and searching for quotes, which cost the processor more than everything else in a
verification.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from app.engine.pipeline import AnswerPages
from cache.single_flight import LRUCache
from judges.errors import ReplyNotCached
from judges.prompting.rendering import Question
from judges.verifier import ClaimQuestion, EvidenceLookup, PageOnlyVerifier
from rubrics.verdict import Outcome, Usage, Verdict

_MAX_BYTES: Final = 64 * 1024 * 1024
_OVERHEAD_BYTES: Final = 4096
"""Approximate size of a verdict without its texts."""


class SharedVerdicts:
    """Recent verdicts of one process, and the claims that are being judged."""

    def __init__(self, *, keep_s: float) -> None:
        """``keep_s``: time for which a verdict is used again."""
        self._keep_s = keep_s
        self._verdicts: LRUCache[Hashable, tuple[float, Verdict]] = LRUCache(_MAX_BYTES)
        self.running: dict[Hashable, asyncio.Event] = {}
        """Claims that an answer is judging. The event is set when it has finished, with a verdict or without."""

    def get(self, key: Hashable) -> Verdict | None:
        known = self._verdicts.get(key)
        return None if known is None or time.monotonic() >= known[0] else known[1]

    def put(self, key: Hashable, verdict: Verdict) -> None:
        """Keep a verdict that every vote supports or that was decided by a majority of usable votes.

        A verdict with a lost vote is not kept: another answer may get all votes.
        """
        if verdict.outcome not in (Outcome.PASSED, Outcome.FAILED) or any(vote.fault for vote in verdict.votes):
            return
        cached = Usage(cached_calls=1)
        requests = tuple(replace(request, usage=cached) for request in verdict.requests)
        shared = replace(
            verdict,
            votes=tuple(replace(vote, cached=True) for vote in verdict.votes),
            requests=requests,
            usage=Usage(cached_calls=len(requests)),
        )
        size = _OVERHEAD_BYTES + 2 * (len(verdict.reasoning) + sum(len(quote.text) for quote in verdict.quotes))
        self._verdicts.put(key, (time.monotonic() + self._keep_s, shared), size)


class Turns:
    """Lets one verification or claim continue in each iteration of the event loop.

    Many become ready at once, for example when the replies of a model arrive together. Without turns, the event loop
    would serve no other request until all of them wait again.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)


class SharingVerifier(PageOnlyVerifier):
    """Claim judge of one answer that shares its verdicts on pages with the other answers of the process."""

    def __init__(
        self,
        *arguments: Any,
        verdicts: SharedVerdicts,
        configuration: Hashable,
        answer_pages: AnswerPages,
        waiting: Callable[[], AbstractContextManager[None]],
        on_shared: Callable[[Verdict], None],
        turns: Turns,
        **options: Any,
    ) -> None:
        """Create the verifier of one answer.

        Args:
            arguments: Those of ``Verifier``, as ``options``.
            verdicts: Verdicts of the process.
            configuration: What determines a verdict besides the claim and the page.
            answer_pages: Pages of the answer.
            waiting: Entered while another answer judges the claim.
            on_shared: Called with each verdict that was taken from another answer.
            turns: Turns of the process. Each claim waits for one before its prompt is rendered, and each answer before
                its result is built.
        """
        super().__init__(*arguments, **options)
        self._verdicts = verdicts
        self._configuration = configuration
        self._answer_pages = answer_pages
        self._waiting = waiting
        self._on_shared = on_shared
        self._turns = turns

    async def before_result(self) -> None:
        await self._turns.wait()

    async def _judge_question(self, question: Question, trials: int, *, cache_only: bool) -> Verdict:
        await self._turns.wait()
        return await super()._judge_question(question, trials, cache_only=cache_only)

    async def settle_on(
        self, url: str, question: ClaimQuestion, evidence_for: EvidenceLookup, *, cache_only: bool
    ) -> Verdict:
        capture = self._answer_pages.used_capture(url)
        if capture is None or not capture.is_evidence:
            return await super().settle_on(url, question, evidence_for, cache_only=cache_only)
        key = (
            self._configuration,
            self.model,
            capture.id,
            replace(question.claim, sources=None),
            question.task,
            question.trials,
            question.use_screenshot,
        )
        verdicts = self._verdicts
        if (running := verdicts.running.get(key)) is not None:
            if cache_only:
                raise ReplyNotCached
            with self._waiting():
                await running.wait()
        known = verdicts.get(key)
        if known is not None:
            self._on_shared(known)
            return known
        if key in verdicts.running:  # the answer that was waited for got no verdict
            return await super().settle_on(url, question, evidence_for, cache_only=cache_only)
        finished = verdicts.running[key] = asyncio.Event()
        try:
            verdict = await super().settle_on(url, question, evidence_for, cache_only=cache_only)
        finally:
            finished.set()
            del verdicts.running[key]
        if self._answer_pages.used_capture(url) is capture:  # it is captured again if its stored copy is damaged
            verdicts.put(key, verdict)
        return verdict
