"""Questions of one step to a chat model, in either protocol.

Tournament: prune, ask, parse, until at most one candidate is left. The rounds of a step run in sequence, because later
rounds depend on earlier picks. Guide: one question. Steps run concurrently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.llm.client import LLMClient, LLMRequest, Message
from judges.llm.families import family_of
from judges.suites.mind2web.guide import guide_messages, guide_question, parse_guide
from judges.suites.mind2web.page import Page
from judges.suites.mind2web.parsing import Parsed, parse_llm
from judges.suites.mind2web.questions import Template, last_message, question
from judges.suites.mind2web.representation import show_page
from judges.suites.mind2web.steps import Candidate, Step
from judges.suites.mind2web.tournament import Prediction, Tournament
from rubrics.verdict import Usage

MAX_TOKENS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One question and its reply. ``prompt`` is the last message, ``picked`` the id of the chosen option, or None."""

    candidate_ids: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    prompt: str
    raw: str
    parsed: Parsed
    picked: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStep:
    """All rounds of a step and the resulting prediction. ``empty`` counts empty replies, which choose no option."""

    rounds: tuple[Round, ...]
    prediction: Prediction
    usage: Usage
    empty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlayer:
    """Model and prompt template for playing steps.

    ``model`` is a name without provider. ``parse`` reads a reply. Requests with different ``vote`` are never answered
    from the same reply.
    """

    client: LLMClient
    model: str
    template: Template
    temperature: float = 0.0
    max_tokens: int = MAX_TOKENS
    parse: Callable[[str], Parsed] = parse_llm
    vote: int = 0

    async def play(self, step: Step, order: Sequence[str]) -> PlayedStep:
        """Play all rounds of a step. ``order`` are the candidate ids in the order of play.

        Raises:
            PageUnusable: the page is not XML, or lacks a candidate.
            LLMError: a round got no reply. ``usage`` of the error covers the whole step.
        """
        tournament = Tournament(list(order))
        rounds: list[Round] = []
        usage, empty = Usage(), 0
        page = await asyncio.to_thread(Page.parse, step.page)
        while (group := tournament.next_group()) is not None:
            shown_page = await asyncio.to_thread(show_page, page, group)
            text = question(shown_page, task=step.task, history=step.history, wording=self.template.wording)
            prompt = last_message(shown_page.context, text)
            try:
                raw, cost = await self._ask(step, self.template.fill(prompt))
            except LLMError as error:
                error.usage = usage + error.usage
                raise
            usage, empty = usage + cost, empty + (not raw.strip())
            parsed = self.parse(raw)
            picked = tournament.reply([id for id, _ in shown_page.options], parsed)
            rounds.append(
                Round(
                    candidate_ids=group,
                    options=shown_page.options,
                    prompt=prompt,
                    raw=raw,
                    parsed=parsed,
                    picked=picked,
                )
            )
        return PlayedStep(rounds=tuple(rounds), prediction=tournament.prediction, usage=usage, empty=empty)

    async def play_guide(self, step: Step, candidates: Sequence[Candidate], *, max_html_chars: int) -> PlayedStep:
        """Ask the guide's question about a step.

        Raises:
            PageUnusable: a candidate cannot be shown.
            LLMError: there is no reply.
        """
        asked = await asyncio.to_thread(guide_question, step, candidates, max_html_chars=max_html_chars)
        messages = guide_messages(self.template, asked)
        raw, usage = await self._ask(step, messages)
        parsed = parse_guide(raw)
        picked = asked.picked(parsed.letter)
        only = Round(
            candidate_ids=tuple(candidate.id for candidate in candidates),
            options=asked.options,
            prompt=str(messages[-1]["content"]),
            raw=raw,
            parsed=parsed,
            picked=picked,
        )
        prediction = Prediction(picked or "", parsed.op_string)
        return PlayedStep(rounds=(only,), prediction=prediction, usage=usage, empty=int(not raw.strip()))

    async def _ask(self, step: Step, messages: tuple[Message, ...]) -> tuple[str, Usage]:
        request = LLMRequest(
            model=self.model,
            messages=messages,
            prompt=self.template.ref,
            params=request_params(self.model, self.temperature, self.max_tokens),
            vote=self.vote,
            metadata={"sample_id": step.sample_id, "task_id": step.task_id, "step": str(step.number)},
        )
        try:
            reply = await self.client.complete(request)
        except LLMOutputUnusable as error:
            if error.kind is not UnusableKind.EMPTY:
                raise
            return "", error.usage  # the reply was empty even after a retry: it chooses no option
        return reply.text, reply.usage


def request_params(model: str, temperature: float, max_tokens: int = MAX_TOKENS) -> Mapping[str, Any]:
    """Return the parameters of every request: the published ones, or none for a reasoning model.

    A reasoning model accepts no temperature, and its reasoning would use up the limit.

    >>> dict(request_params("gpt-4o", 0.0)), dict(request_params("gpt-6-luna", 0.0))
    ({'max_tokens': 50, 'temperature': 0.0}, {})
    """
    family = family_of(model)
    if family is not None and "temperature" not in family.params:
        return {}
    return {"max_tokens": max_tokens, "temperature": temperature}
