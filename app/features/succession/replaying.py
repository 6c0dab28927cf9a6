"""Replay of stored requests: another model judges the same claims on the stored pages. No page is captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.engine.forecasting import reply_lookup
from app.engine.runtime import Runtime
from cache.capture import CaptureOutcome, Evidence
from cache.errors import NoEvidence
from judges.analysis.forecasts.forecast import Forecast, UsageByRole, forecast_from_runs
from judges.analysis.forecasts.past_results import past_results_of
from judges.analysis.forecasts.simulation import BOUNDS, LIKELY, LexicalReplies, SimulatedLLM
from judges.analysis.meta_eval.ask import JudgedItem, ask_all
from judges.analysis.succession import Replayed, StoredRequest
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_model
from judges.verifier import Verifier

_SIMULATIONS: Final = (LIKELY[0], *BOUNDS)


class Replayer:
    """Judge of stored requests with a new model.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
    """

    def __init__(self, runtime: Runtime, model: str, *, votes: int) -> None:
        self._client, self._name = runtime.models.client(model)
        self._provider, self._runtime, self._votes = parse_model(model).provider, runtime, votes

    async def replay(
        self, requests: Sequence[StoredRequest], done: Callable[[JudgedItem], None] = lambda asked: None
    ) -> list[Replayed]:
        """Return the requests with the verdicts of the model. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self._name)
        replayed = await self._ask(requests, self._client, monitor, done)
        if monitor.rejection is not None:
            raise monitor.rejection
        return replayed

    async def forecast(self, requests: Sequence[StoredRequest]) -> Forecast:
        """Return the expected requests, tokens and cost. Sends nothing."""
        past = past_results_of((), script_sha256=None, model=self._name, answer_sha256="")
        kept, key_of = reply_lookup(self._client)
        memo, tallies = LexicalReplies(), [UsageByRole() for _ in _SIMULATIONS]
        for assumptions, tally in zip(_SIMULATIONS, tallies, strict=True):
            simulated = SimulatedLLM(
                past=past,
                assumptions=assumptions,
                memo=memo,
                tally=tally,
                kept=kept,
                key_of=key_of,
                prices=self._runtime.settings.prices,
            )
            await self._ask(requests, simulated, RejectionMonitor(self._name), lambda asked: None)
        return forecast_from_runs(tallies[:1], tallies[1:])

    async def _ask(
        self,
        requests: Sequence[StoredRequest],
        client: LLMClient,
        monitor: RejectionMonitor,
        done: Callable[[JudgedItem], None],
    ) -> list[Replayed]:
        parameters = RequestParameters(self._runtime.settings.parameters, {self._name: self._provider})
        judge = Verifier(
            ObservedLLM(client, (monitor,), prepare=parameters.add_to),
            self._name,
            block_builder=self._runtime.block_builder,
            pages=self._runtime.page_preparer,
        )
        items = [request.item for request in requests]
        asked = await ask_all(items, judge, stored=self._stored, votes=self._votes, done=done)
        return [Replayed(request=request, asked=one) for request, one in zip(requests, asked, strict=True)]

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)
