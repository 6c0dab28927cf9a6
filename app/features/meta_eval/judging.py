"""Measurement of models on labels: each claim is judged like a leaf, with the recorded pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.engine.runtime import Runtime
from app.engine.text_judging import LabelJudge
from judges.analysis.meta_eval.items import Item, JudgedItem
from judges.analysis.meta_eval.judge_agreement import JudgeAgreement, JudgeTally


class LiveJudge(LabelJudge):
    """``LabelJudge`` whose agreement with the labels is counted.

    ``listed`` limits the disagreements that are kept, see ``JudgeTally``.
    """

    def __init__(self, runtime: Runtime, model: str, *, votes: int, listed: int | None = None) -> None:
        super().__init__(runtime, model, votes=votes)
        self._tally = JudgeTally(self.model, asked=True, votes=votes, listed=listed)

    async def measure(self, items: Sequence[Item], done: Callable[[JudgedItem], None]) -> None:
        """Judge the usable items and count their verdicts. ``done`` is called after each.

        Raises:
            LLMRejected: the provider refuses every request.
        """
        async for one in self.ask(items, done):
            self._tally.add_asked(one)

    def result(self) -> JudgeAgreement:
        """Return the agreement with the labels so far."""
        return self._tally.result()
