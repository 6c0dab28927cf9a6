"""Measurement of models on labels: each claim is judged like a leaf, with the recorded pages."""

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
from judges.analysis.meta_eval.items import Item
from judges.analysis.meta_eval.judge_agreement import JudgeAgreement, JudgeTally
from judges.analysis.meta_eval.partial import WordRule
from judges.llm.client import LLMClient
from judges.llm.observed import ObservedLLM, RejectionMonitor
from judges.llm.parameters import RequestParameters
from judges.llm.providers import parse_model
from judges.verifier import Verifier

_CHUNK: Final = 500
"""Items that are judged before their verdicts are counted and dropped."""
_SIMULATIONS: Final = (LIKELY[0], *BOUNDS)


class LiveJudge:
    """A model (``provider/model``) that is asked about labelled items. No page is captured.

    ``listed`` limits the disagreements that are kept. With ``words``, the model also marks unsupported words, see
    ``JudgeTally``.

    Raises:
        ModelNotConfigured: the model does not exist or its API key is missing.
    """

    def __init__(
        self, runtime: Runtime, model: str, *, votes: int, listed: int | None = None, words: WordRule | None = None
    ) -> None:
        client, self.name = runtime.models.client(model)
        self.model = str(parse_model(model))
        self._runtime, self._client, self._votes = runtime, client, votes
        self._partial = words is not None
        self._tally = JudgeTally(self.model, asked=True, votes=votes, listed=listed, words=words)
        self._simulated = [UsageByRole() for _ in _SIMULATIONS]

    async def ask(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> None:
        """Judge the usable items. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        monitor = RejectionMonitor(self.name)
        judge = self._verifier(self._client, monitor)
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            for one in await self._ask_all(chunk, judge, done):
                self._tally.add_asked(one)
            if monitor.rejection is not None:
                raise monitor.rejection

    async def simulate(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> None:
        """Add the expected load of the usable items to the forecast. Sends nothing."""
        past = past_results_of((), script_sha256=None, model=self.name, answer_sha256="")
        kept, key_of = reply_lookup(self._client)
        for start in range(0, len(items), _CHUNK):
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
                judge = self._verifier(simulated, RejectionMonitor(self.name))
                chunk = items[start : start + _CHUNK]
                await self._ask_all(chunk, judge, done)

    def result(self) -> JudgeAgreement:
        """Return the agreement with the labels so far."""
        return self._tally.result()

    def forecast(self) -> Forecast:
        """Return the forecast of the simulated items."""
        return forecast_from_runs(self._simulated[:1], self._simulated[1:])

    async def _ask_all(
        self, items: Sequence[Item], judge: Verifier, done: Callable[[JudgedItem], None]
    ) -> tuple[JudgedItem, ...]:
        return await ask_all(items, judge, stored=self._stored, votes=self._votes, partial=self._partial, done=done)

    def _verifier(self, client: LLMClient, monitor: RejectionMonitor) -> Verifier:
        provider = parse_model(self.model).provider
        parameters = RequestParameters(self._runtime.settings.parameters, {self.name: provider})
        observed = ObservedLLM(client, (monitor,), prepare=parameters.add_to)
        return Verifier(
            observed, self.name, block_builder=self._runtime.block_builder, pages=self._runtime.page_preparer
        )

    async def _stored(self, page_id: str) -> Evidence:
        capture = await self._runtime.index.get(page_id)
        if capture is None:
            raise NoEvidence(page_id, CaptureOutcome.EMPTY, "this capture is not stored", gone=False, capture=None)
        return await self._runtime.pages.evidence(capture)
