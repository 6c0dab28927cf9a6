"""Questions of one step, in either protocol.

Tournament: prune, ask, parse, until at most one candidate is left. The rounds of a step run in sequence, because later
rounds depend on earlier picks. Guide: one question. Steps run concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.llm.families import family_of
from judges.suites.mind2web.guide import guide_messages, guide_question, parse_guide
from judges.suites.mind2web.page import Page
from judges.suites.mind2web.parsing import NONE_LETTER, Parsed
from judges.suites.mind2web.questions import (
    HISTORY,
    NO_HISTORY,
    Template,
    last_message,
    option_lines_after_none,
    question,
)
from judges.suites.mind2web.representation import ShownPage, show_page
from judges.suites.mind2web.steps import Candidate, Step
from judges.suites.mind2web.tournament import Prediction, Tournament
from judges.suites.multimodal.options import option_name
from judges.suites.questions import Question, Questions

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
    """All rounds of a step and the resulting prediction."""

    rounds: tuple[Round, ...]
    prediction: Prediction

    @property
    def empty(self) -> int:
        """Number of empty replies, which choose no option."""
        return sum(not one.raw.strip() for one in self.rounds)


def tournament_questions(
    step: Step, order: Sequence[str], *, template: Template, parse: Callable[[str], Parsed]
) -> Questions[PlayedStep]:
    """Yield the rounds of a step. ``order`` are the candidate ids in the order of play.

    Raises:
        PageUnusable: the page is not XML, or lacks a candidate. Raised before the first round.
    """
    tournament = Tournament(list(order))
    rounds: list[Round] = []
    page = Page.parse(step.page)
    for id in order:
        page.candidate(id)
    while (group := tournament.next_group()) is not None:
        shown = show_page(page, group)
        text = question(shown, task=step.task, history=step.history, wording=template.wording)
        prompt = last_message(shown.context, text)
        raw = yield _question(template.fill(prompt, _values(step, shown, template)), shown.options)
        parsed = parse(raw)
        picked = tournament.reply([id for id, _ in shown.options], parsed)
        rounds.append(
            Round(candidate_ids=group, options=shown.options, prompt=prompt, raw=raw, parsed=parsed, picked=picked)
        )
    return PlayedStep(rounds=tuple(rounds), prediction=tournament.prediction)


def guide_questions(
    step: Step, candidates: Sequence[Candidate], *, template: Template, max_html_chars: int
) -> Questions[PlayedStep]:
    """Yield the guide's question about a step.

    Raises:
        PageUnusable: a candidate cannot be shown.
    """
    asked = guide_question(step, candidates, max_html_chars=max_html_chars)
    messages = guide_messages(template, asked)
    raw = yield _question(messages, asked.options)
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
    return PlayedStep(rounds=(only,), prediction=Prediction(picked or "", parsed.op_string))


def _values(step: Step, shown: ShownPage, template: Template) -> Mapping[str, str]:
    """Return the values of placeholders of an object as template."""
    return {
        "task": step.task,
        "step": str(step.number + 1),
        "history": "\n".join(step.history[-HISTORY:]) or NO_HISTORY,
        "page": shown.context,
        "options": "\n".join(option_lines_after_none(template.wording.none, [text for _, text in shown.options])),
    }


def _question(messages: tuple[Mapping[str, Any], ...], options: Sequence[tuple[str, str]]) -> Question:
    named = tuple((option_name(place), text, id) for place, (id, text) in enumerate(options, start=1))
    return Question(messages=messages, options=named, none=NONE_LETTER)


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
