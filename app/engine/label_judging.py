"""Judging of labelled claims by a model, like leaves, with the recorded pages. No page is captured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from app.engine.runtime import Runtime
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.meta_eval.ask import JudgedItem, ask_all
from judges.analysis.meta_eval.items import Item
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_model
from judges.verifier import Verifier

_CHUNK: Final = 500
"""Items that are judged before their verdicts are yielded, so that the caller can count and drop them."""


class LabelJudge:
    """A model (``provider/model``) that is asked about labelled claims. With ``partial``, for partial support.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
    """

    def __init__(self, runtime: Runtime, model: str, *, votes: int, partial: bool = False) -> None:
        self._client, self.name = runtime.models.client(model)
        provider_model = parse_model(model)
        self.model, self._provider = str(provider_model), provider_model.provider
        self._runtime, self._votes, self._partial = runtime, votes, partial

    async def ask(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> AsyncIterator[JudgedItem]:
        """Judge the usable items and yield them in order. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self.name)
        parameters = RequestParameters(self._runtime.settings.parameters, {self.name: self._provider})
        judge = Verifier(
            ObservedLLM(self._client, (monitor,), prepare=parameters.add_to),
            self.name,
            block_builder=self._runtime.block_builder,
            pages=self._runtime.page_preparer,
        )
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            for one in await ask_all(
                chunk, judge, stored=self._stored, votes=self._votes, partial=self._partial, done=done
            ):
                yield one
            if monitor.rejection is not None:
                raise monitor.rejection

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)
