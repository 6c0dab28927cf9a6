"""Judging of labelled claims by a model, like leaves, with the recorded pages. No page is captured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from app.engine.runtime import Runtime
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.meta_eval.items import Item, JudgedItem, ask_all
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_judge
from judges.verifier import Verifier, judge_named

_CHUNK: Final = 500
"""Items that are judged before their verdicts are yielded, so that the caller can count and drop them."""


class LabelJudge:
    """A model (``provider/model``) or jury that is asked about labelled claims.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
    """

    def __init__(self, runtime: Runtime, model: str, *, votes: int) -> None:
        self._client, self.name = runtime.models.client(model)
        named = parse_judge(model)
        self.model, self._providers = str(named), named.providers
        self._runtime, self._votes = runtime, votes

    async def ask(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> AsyncIterator[JudgedItem]:
        """Judge the usable items and yield them in order. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self.name)
        parameters = RequestParameters(self._runtime.settings.parameters, self._providers)
        llm = ObservedLLM(self._client, (monitor,), prepare=parameters.add_to)
        builder, preparer = self._runtime.block_builder, self._runtime.page_preparer
        judge = judge_named(self.name, lambda member: Verifier(llm, member, block_builder=builder, pages=preparer))
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            for one in await ask_all(chunk, judge, stored=self._stored, votes=self._votes, done=done):
                yield one
            if monitor.rejection is not None:
                raise monitor.rejection

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)
