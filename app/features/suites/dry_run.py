"""Estimate of the requests, tokens and cost of a suite run, without asking the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.console import event_loop
from app.features.suites.journals import MemoryJournal
from app.features.suites.suite_run import SuiteModel, SuiteRun, run_steps
from app.settings import Settings
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.pricing import estimate_tokens
from judges.llm.providers import parse_model
from rubrics.verdict import Usage

_CHARS_PER_TOKEN: Final = 3
_SHORT: Final = "Answer: A.\nELEMENT: Z"
"""Reply that picks no option: the tournament then has no further rounds."""
_LONG: Final = "Answer: B.\nAction: CLICK\nELEMENT: A\nACTION: CLICK\n"
"""Reply that always picks an option: the tournament then has as many rounds as possible."""
UNLIMITED_TOKENS: Final = 1_500
"""Assumed length of replies of models that are sent no limit."""


class _CountingClient:
    """``LLMClient`` that sends nothing, counts tokens and always returns the same reply."""

    def __init__(self, text: str, *, fills_limit: bool) -> None:
        self._text = text
        self._fills_limit = fills_limit
        self.calls = self.input_tokens = self.output_tokens = 0

    async def complete(self, request: LLMRequest) -> LLMReply:
        limit = int(request.params.get("max_tokens") or UNLIMITED_TOKENS)
        text = self._text.ljust(_CHARS_PER_TOKEN * limit, "x") if self._fills_limit else self._text
        self.calls += 1
        self.input_tokens += estimate_tokens(request.messages)
        self.output_tokens += -(-len(text) // _CHARS_PER_TOKEN)
        return LLMReply(text=text, parsed=None, model=request.model, usage=Usage())

    async def aclose(self) -> None:
        """Do nothing."""


def estimate_run(run: SuiteRun[Any], settings: Settings) -> dict[str, Any]:
    """Return the lowest and highest calls, tokens and cost in USD. ``usd`` is None if the price is unknown. Blocks.

    Replies in a journal or in the reply cache are not taken into account: they cost nothing.
    """
    name = parse_model(settings.model).model
    ends = {"low": _CountingClient(_SHORT, fills_limit=False), "high": _CountingClient(_LONG, fills_limit=True)}
    for client in ends.values():
        suite_model = SuiteModel(client=client, model=name)
        event_loop.run(run_steps(run, MemoryJournal(), suite_model, max_concurrent=settings.max_llm))
    price = settings.prices.of(name)
    counted = {
        figure: {end: getattr(client, figure) for end, client in ends.items()}
        for figure in ("calls", "input_tokens", "output_tokens")
    }
    usd = price and {
        end: price.usd(input_tokens=client.input_tokens, output_tokens=client.output_tokens)
        for end, client in ends.items()
    }
    return {"model": settings.model, "steps": run.total, **counted, "usd": usd}


def estimate_line(estimate: Mapping[str, Any]) -> str:
    def spread(figure: str) -> str:
        low, high = estimate[figure]["low"], estimate[figure]["high"]
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    usd = estimate["usd"]
    cost = "price unknown (set it in ASSAY_PRICES)" if usd is None else f"{usd['low']:.4f} to {usd['high']:.4f} USD"
    return (
        f"{estimate['steps']} steps by {estimate['model']}: {spread('calls')} calls, {spread('input_tokens')} input "
        f"and {spread('output_tokens')} output tokens, {cost}. Nothing was sent."
    )
