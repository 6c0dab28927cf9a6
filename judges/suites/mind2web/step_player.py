"""Questions of one step, in either protocol.

Tournament: prune, ask, parse, until at most one candidate is left. The rounds of a step run in sequence, because later
rounds depend on earlier picks. Guide: one question. Steps run concurrently.

The protocol of the integration guide has one question per step with all kept candidates
(docs/mind2web-rules.md, "The guide"). Options stand in document order, because any other order could give the answer
away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

from judges.prompting.prompts import load_prompt
from judges.suites.errors import PageUnusable
from judges.suites.mind2web.data import Candidate, Step
from judges.suites.mind2web.page import (
    ID,
    OPTION_WORDS,
    Page,
    attribute_words,
    bracket_text,
    first_words,
    number_candidates,
    show_page,
)
from judges.suites.mind2web.questions import (
    HISTORY,
    NO_HISTORY,
    Template,
    last_message,
    option_lines_after_none,
    place_values,
    question,
    read_template,
)
from judges.suites.mind2web.tournament import CLICK, NONE_LETTER, Parsed, Prediction, Tournament
from judges.suites.questions import Questions, option_index

SHIPPED = "guide"
TRUNCATED = "\n... (truncated)"
NONE_OPTION = "None of the above"

# The published parser matches anywhere in the reply, so none of these is anchored at a word.
ANSWER = re.compile(r"answer\s*[:\-]\s*([a-z]+)", re.IGNORECASE)
ACTION = re.compile(r"action\s*[:\-]\s*([a-z_ ]+)", re.IGNORECASE)
_VALUE = re.compile(r"value\s*[:\-]\s*([^\n]*)", re.IGNORECASE)
_ALIASES = {
    "PRESS": CLICK,
    "OPEN": CLICK,
    "CHOOSE": "SELECT",
    "SELECTOPTION": "SELECT",
    "SELECTOPTIONAL": "SELECT",
    "INPUT": "TYPE",
    "ENTER": "TYPE",
}
_NO_VALUE = frozenset({"N/A", "NA", "NONE", "NULL"})
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>/ ]+")


class GuideReply(NamedTuple):
    """Parsed reply. ``answer`` are the letters of an option; None: the reply lacks the field."""

    answer: str | None
    action: str | None
    value: str | None


def parse_reply(raw: str) -> GuideReply:
    """Parse a reply by the later version of the guide's code.

    >>> parse_reply("answer - c\\nAction: SELECT OPTION\\nValue: '2'")
    GuideReply(answer='C', action='SELECT', value='2')
    >>> parse_reply("Answer: (B)").answer
    """
    answer, action, value = ANSWER.search(raw), ACTION.search(raw), _VALUE.search(raw)
    name = "" if action is None else re.sub("[ _]", "", action[1].strip().upper())
    return GuideReply(
        answer=None if answer is None else answer[1].upper(),
        action=None if action is None else _ALIASES.get(name, name),
        value=None if value is None else _value(value[1]),
    )


def parse_guide(raw: str) -> Parsed:
    """Parse a reply to option and operation. A reply without an option counts as "none of the above".

    >>> parse_guide("Answer: AB\\nAction: press")
    Parsed(letter='AB', op_string='CLICK ')
    """
    reply = parse_reply(raw)
    return Parsed(letter=reply.answer or NONE_LETTER, op_string=f"{reply.action or ''} {reply.value or ''}")


def operation_f1(gold_op: str | None, gold_value: str | None, op: str | None, value: str | None) -> float:
    """Return the operation F1 of the later version: over the multisets of words of the values, in lower case.

    The value of a click is ignored. Operations other than TYPE and SELECT must be equal.

    >>> operation_f1("TYPE", "St. Louis", "TYPE", "st louis"), operation_f1("TYPE", "a a b", "TYPE", "a b b")
    (1.0, 0.6666666666666666)
    """
    if not gold_op or gold_op != op:
        return 0.0
    if gold_op not in ("TYPE", "SELECT"):
        return 1.0
    gold, predicted = (Counter(_WORD.findall((text or "").lower())) for text in (gold_value, value))
    if not gold and not predicted:
        return 1.0
    return 2 * (gold & predicted).total() / (gold.total() + predicted.total())


def _value(written: str) -> str:
    value = written.strip()
    if value.upper() in _NO_VALUE:
        return ""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def keep_candidates(step: Step, top_k: int) -> list[Candidate]:
    """Return the candidates to show.

    With ranks, candidates with a rank below ``top_k`` are kept, positives like all others. Without any rank, the first
    ``top_k`` listed ones and every positive are kept (docs/mind2web-rules.md, "The guide").
    """
    candidates = (*step.positives, *step.negatives)
    if any(candidate.rank is not None for candidate in candidates):
        ids = {candidate.id for candidate in candidates if candidate.rank is not None and candidate.rank < top_k}
    else:
        ids = {candidate.id for candidate in (*step.positives, *candidates[:top_k])}
    return list({candidate.id: candidate for candidate in reversed(candidates) if candidate.id in ids}.values())[::-1]


Options: TypeAlias = tuple[tuple[str, str], ...]
"""Options of a question in document order, (backend_node_id, text). The first one has the letter B."""


def picked_option(options: Options, letter: str) -> str | None:
    """Return the id of the option with these letters, or None for "none of the above" and unknown letters."""
    index = option_index(letter)
    return options[index - 1][0] if index and index <= len(options) else None


def _values(step: Step, page: str, options: Options, *, none: str, history: Sequence[str]) -> dict[str, str]:
    """Return the values of the placeholders of a template."""
    return {
        "task": step.task,
        "step": str(step.number + 1),
        "history": "\n".join(history) or NO_HISTORY,
        "page": page,
        "options": "\n".join(option_lines_after_none(none, [text for _, text in options])),
    }


@cache
def shipped_guide_template() -> Template:
    prompt = load_prompt(SHIPPED)
    return read_template(prompt.text, name=prompt.ref, ref=prompt.ref)


def guide_options(step: Step, candidates: Sequence[Candidate]) -> Options:
    """Return the options of a step. Parses its page, so call it in a thread.

    Raises:
        PageUnusable: a candidate is a ``<text>`` element, which cannot be acted on.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    try:
        page = Page.parse(step.page)
    except PageUnusable:
        shown: list[tuple[str, str]] = []  # raw_html is not XML
    else:
        shown = _snippets(page, tuple(id for id in by_id if page.contains(id)))
    placed = {id for id, _ in shown}
    # The listed order would put positives first.
    absent = sorted((one for one in candidates if one.id not in placed), key=lambda one: (len(one.id), one.id))
    shown += [(one.id, _described(one)) for one in absent]
    return tuple((id, text + _rank_note(by_id[id])) for id, text in shown)


def _snippets(page: Page, ids: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return (id, first words) of these elements in document order.

    Each has its id in the data, which the page contains. Numbers of candidates, also of nested ones, would have no
    meaning here.
    """
    numbered = number_candidates(page.pruned(ids))
    for _, element in numbered:
        del element.attrib["id"]
    texts = ((id, _with_data_id(bracket_text(element, html_brackets=True), id)) for id, element in numbered)
    return [(id, first_words(text, OPTION_WORDS)) for id, text in texts]


def _with_data_id(text: str, id: str) -> str:
    return _TAG.sub(lambda match: f"{match[0]} {ID}={id}", text, count=1)


def _described(candidate: Candidate) -> str:
    """Return the snippet of a candidate that is not on the page, from its attributes in the data."""
    words = attribute_words(candidate.attributes)
    return first_words(f"<{candidate.tag or 'element'} backend_node_id={candidate.id} {words}".rstrip() + ">", 12)


def _rank_note(candidate: Candidate) -> str:
    notes = [] if candidate.rank is None else [f"rank {candidate.rank}"]
    notes += [] if candidate.score is None else [f"score {candidate.score:.4g}"]
    return f" ({', '.join(notes)})" if notes else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One question and its reply. ``prompt`` is the last message, ``picked`` the id of the chosen option, or None."""

    candidate_ids: tuple[str, ...]
    options: Options
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
        values = _values(
            step, shown.context, shown.options, none=template.wording.none, history=step.history[-HISTORY:]
        )
        raw = yield template.fill(prompt, values)
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

    A template whose last message has placeholders gets their values, any other one the shipped question.

    Raises:
        PageUnusable: a candidate cannot be shown.
    """
    options = guide_options(step, candidates)
    page = step.page.strip()
    if len(page) > max_html_chars:
        page = page[:max_html_chars] + TRUNCATED
    shipped = shipped_guide_template()
    wording = {**shipped.extra, **template.extra}
    values = _values(step, page, options, none=NONE_OPTION, history=step.history)
    values |= {"ask": wording["question"], "answer_format": wording["answer_instructions"]}
    messages = template.fill(place_values(shipped.messages[-1][1], values), values)
    raw = yield messages
    parsed = parse_guide(raw)
    picked = picked_option(options, parsed.letter)
    only = Round(
        candidate_ids=tuple(candidate.id for candidate in candidates),
        options=options,
        prompt=str(messages[-1]["content"]),
        raw=raw,
        parsed=parsed,
        picked=picked,
    )
    return PlayedStep(rounds=(only,), prediction=Prediction(picked or "", parsed.op_string))
