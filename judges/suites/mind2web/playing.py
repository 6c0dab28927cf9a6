"""Plays one step against a chat model: prune, ask, parse, until one element is left or none.

The rounds of a step follow each other, since later ones depend on earlier picks; steps are played side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMRequest
from judges.llm.families import family_of
from judges.suites.mind2web.page import Page
from judges.suites.mind2web.parsing import Parsed, parse_llm
from judges.suites.mind2web.questions import Template, question, with_page
from judges.suites.mind2web.representation import Shown, show
from judges.suites.mind2web.steps import Step
from judges.suites.mind2web.tournament import Prediction, Tournament
from rubrics.verdict import Usage

MAX_TOKENS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One question and its answer. ``picked`` is the id that the letter stands for, None where it stands for none."""

    candidate_ids: tuple[str, ...]
    shown: Shown
    question: str
    raw: str
    parsed: Parsed
    picked: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All rounds of a step and what came out. ``empty`` counts answers without a word: they choose no option."""

    rounds: tuple[Round, ...]
    prediction: Prediction
    usage: Usage
    empty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """A model with the prompt it is asked by. ``model`` is a bare name."""

    client: LLMClient
    model: str
    template: Template
    temperature: float = 0.0

    async def play(self, step: Step, order: Sequence[str]) -> Played:
        """``order`` are the ids in the order of play.

        Raises:
            PageUnusable: the page is no XML, or lacks a candidate.
            LLMError: a round got no answer; its usage is that of the whole step.
        """
        tournament = Tournament(list(order))
        rounds: list[Round] = []
        usage, empty = Usage(), 0
        page = await asyncio.to_thread(Page.parse, step.page)
        while (group := tournament.next_group()) is not None:
            shown = await asyncio.to_thread(show, page, group)
            asked = question(shown, task=step.task, history=step.history, wording=self.template.wording)
            try:
                raw, cost = await self._ask(with_page(shown.context, asked))
            except LLMError as error:
                error.usage = usage + error.usage
                raise
            usage, empty = usage + cost, empty + (not raw.strip())
            parsed = parse_llm(raw)
            picked = tournament.reply([id for id, _ in shown.options], parsed)
            rounds.append(
                Round(candidate_ids=group, shown=shown, question=asked, raw=raw, parsed=parsed, picked=picked)
            )
        return Played(rounds=tuple(rounds), prediction=tournament.prediction, usage=usage, empty=empty)

    async def _ask(self, last: str) -> tuple[str, Usage]:
        request = LLMRequest(
            model=self.model,
            messages=self.template.fill(last),
            prompt=self.template.ref,
            params=request_params(self.model, self.temperature),
        )
        try:
            reply = await self.client.complete(request)
        except LLMOutputUnusable as error:
            if error.kind is not UnusableKind.EMPTY:
                raise
            return "", error.usage  # the model answered, twice, and said nothing: that names no option
        return reply.text, reply.usage


def request_params(model: str, temperature: float) -> Mapping[str, Any]:
    """What goes with every question: as published, or the nearest that a reasoning model takes.

    Such a model takes no temperature, and would spend fifty tokens on thinking: it is sent no limit.

    >>> dict(request_params("gpt-4o", 0.0)), dict(request_params("gpt-6-luna", 0.0))
    ({'max_tokens': 50, 'temperature': 0.0}, {})
    """
    family = family_of(model)
    if family is not None and "temperature" not in family.params:
        return {}
    return {"max_tokens": MAX_TOKENS, "temperature": temperature}
