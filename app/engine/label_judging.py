"""Judging of labelled claims by a model, like leaves, with the recorded pages. No page is captured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from app.engine.forecasting import reply_lookup
from app.engine.runtime import Runtime
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.forecasts.forecast import Forecast, UsageByRole, forecast_from_runs
from judges.analysis.forecasts.past_results import past_results_of
from judges.analysis.forecasts.simulation import BOUNDS, LIKELY, LexicalReplies, SimulatedLLM
from judges.analysis.meta_eval.ask import JudgedItem, ask_all
from judges.analysis.meta_eval.items import Item
from judges.jury import judge_named
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_judge
from judges.verifier import Verifier

_CHUNK: Final = 500
"""Items that are judged before their verdicts are yielded, so that the caller can count and drop them."""
_SIMULATIONS: Final = (LIKELY[0], *BOUNDS)


def _ignore(asked: JudgedItem) -> None:
    """Do nothing after an item."""


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
        self._simulated = [UsageByRole() for _ in _SIMULATIONS]

    async def ask(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> AsyncIterator[JudgedItem]:
        """Judge the usable items and yield them in order. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self.name)
        async for chunk in self._chunks(items, self._client, monitor, done):
            for one in chunk:
                yield one
            if monitor.rejection is not None:
                raise monitor.rejection

    async def simulate(self, items: Sequence[Item], done: Callable[[JudgedItem], None] = _ignore) -> None:
        """Add the expected load of the usable items to the forecast. Sends nothing."""
        past = past_results_of((), script_sha256=None, model=self.name, answer_sha256="")
        kept, key_of = reply_lookup(self._client)
        memo = LexicalReplies()
        for assumptions, tally in zip(_SIMULATIONS, self._simulated, strict=True):
            simulated = SimulatedLLM(
                past=past,
                assumptions=assumptions,
                memo=memo,
                tally=tally,
                kept=kept,
                key_of=key_of,
                prices=self._runtime.settings.prices,
            )
            async for _ in self._chunks(items, simulated, RejectionMonitor(self.name), done):
                pass

    def forecast(self) -> Forecast:
        """Return the forecast of the simulated items."""
        return forecast_from_runs(self._simulated[:1], self._simulated[1:])

    async def _chunks(
        self, items: Sequence[Item], client: LLMClient, monitor: RejectionMonitor, done: Callable[[JudgedItem], None]
    ) -> AsyncIterator[tuple[JudgedItem, ...]]:
        parameters = RequestParameters(self._runtime.settings.parameters, self._providers)
        llm = ObservedLLM(client, (monitor,), prepare=parameters.add_to)
        builder, preparer = self._runtime.block_builder, self._runtime.page_preparer
        judge = judge_named(self.name, lambda member: Verifier(llm, member, block_builder=builder, pages=preparer))
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            yield await ask_all(chunk, judge, stored=self._stored, votes=self._votes, done=done)

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)
