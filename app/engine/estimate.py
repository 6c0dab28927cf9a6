"""Estimates of calls, tokens and cost from what is known. No judge runs, no model is called and no page is captured.

The earlier results of a task come first, then the cited pages, their stored sizes and the claims of the newest result.
Cached replies are not subtracted. Apart from reading result files, the functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias

from app.engine.result_folder import newest_result
from cache.capture import Capture
from judges.llm.models import is_reasoning_model
from judges.llm.pricing import Prices
from judges.llm.providers import LEXICAL, ModelName, parse_judge
from judges.result import judged_answers
from judges.tokenizers import MAX_TEXT_TOKENS
from judges.voting import members_in
from rubrics.tree_json import leaves_of

Result: TypeAlias = Mapping[str, Any]
Range: TypeAlias = "tuple[float, float]"
"""Lowest and highest value."""

MAX_PAST_RESULTS: Final = 20
MAX_PAGES: Final = 20
"""Cited pages of an answer whose stored sizes are read."""
DEFAULT_CLAIMS: Final[Range] = (1, 40)
VOTES: Final[Range] = (2, 3)
"""Votes on a claim: two equal ones decide."""
_FEW_RESULTS: Final = 3
_SPREAD: Final = 1.5
"""Factor by which the range of fewer than ``_FEW_RESULTS`` results is widened at both ends."""
_BYTES_PER_TOKEN: Final = 4
"""Of UTF-8. English has about one byte per character; other scripts have more bytes and more tokens per character."""
_UNKNOWN_PAGE_TOKENS: Final[Range] = (500, 15_000)
_TOKENS_PER_IMAGE: Final = 1_000
_PROMPT_TOKENS: Final = 600
"""Instructions, task and claim of a request."""
_REPLY_TOKENS: Final[Range] = (40, 200)
_REASONING_TOKENS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Ranges of calls, tokens and cost. ``usd`` is None if a price is unknown. ``basis`` names the source in words."""

    calls: Range = (0, 0)
    input_tokens: Range = (0, 0)
    output_tokens: Range = (0, 0)
    usd: Range | None = (0, 0)
    basis: str = ""

    def __add__(self, other: Self) -> Self:
        return type(self)(
            calls=_sum(self.calls, other.calls),
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            usd=None if self.usd is None or other.usd is None else _sum(self.usd, other.usd),
        )

    def as_json(self) -> dict[str, Any]:
        """Return each range as ``{low, high}``, or null if a price is unknown."""
        return {
            **{name: _range_json(getattr(self, name)) for name in ("calls", "input_tokens", "output_tokens")},
            "usd": None if self.usd is None else _range_json(self.usd, 6),
            "basis": self.basis,
        }


class PageSize(NamedTuple):
    """Stored size of a page: its text in bytes, and the number of images that a model is shown."""

    text_bytes: int
    images: int

    @classmethod
    def of(cls, capture: Capture) -> Self:
        """Return the size of a capture; nothing if it is no evidence."""
        if not capture.is_evidence:
            return cls(0, 0)
        text = capture.blobs.get("text")
        return cls(0 if text is None else text.size, len(capture.part_names or capture.screenshot_names))

    @property
    def tokens(self) -> Range:
        """Likely tokens: of the text, and of the text with all images."""
        text = min(self.text_bytes / _BYTES_PER_TOKEN, MAX_TEXT_TOKENS)
        return text, text + _TOKENS_PER_IMAGE * self.images


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """What is known about an answer. ``past`` are results of its task, newest first.

    ``pages`` are the sizes of its cited pages; None: not captured.
    """

    text: str
    sha256: str
    pages: Sequence[PageSize | None]
    past: Sequence[Result] = ()


def estimate_answer(facts: AnswerFacts, model: str, prices: Prices) -> Estimate:
    """Estimate the judging of an answer by ``model`` (``provider/model``, or a jury)."""
    judge = parse_judge(model)
    usable = [one for one in facts.past if _is_measured(one, len(judge.members))]
    same_model = [one for one in usable if one.get("model") == judge.model]
    same_answer = [one for one in same_model if one.get("answer_sha256") == facts.sha256]
    for results, words in ((same_answer, "of this answer"), (same_model, "of the task"), (usable, "of other models")):
        if results:
            return _from_results(results, model, prices, words)
    claims, basis = DEFAULT_CLAIMS, "no earlier result: {:g} to {:g} claims assumed".format(*DEFAULT_CLAIMS)
    if facts.past and (found := claims_of(facts.past[0]))[0]:
        claims, basis = found, f"{_counted(int(found[0]), 'claim')} of the newest result"
    return estimate_claims(model, claims, facts.pages, prices, answer=facts.text, basis=basis)


def estimate_claims(
    model: str,
    claims: Range,
    pages: Sequence[PageSize | None],
    prices: Prices,
    *,
    answer: str = "",
    votes: Range = VOTES,
    extractions: bool = True,
    basis: str,
) -> Estimate:
    """Estimate the requests about a number of claims on ``pages``, each with the smallest to the largest page."""
    members = _asked_members(model)
    extra = (0, 1 + claims[1] / 3) if extractions else (0, 0)
    asked = _sum((claims[0] * votes[0], claims[1] * votes[1]), extra)
    sizes = [_UNKNOWN_PAGE_TOKENS if page is None else page.tokens for page in pages] or [(0, 0)]
    base = _PROMPT_TOKENS + len(answer.encode("utf-8", "replace")) / _BYTES_PER_TOKEN
    read = (base + min(low for low, _ in sizes), base + max(high for _, high in sizes))
    reasoning = _REASONING_TOKENS if any(is_reasoning_model(member.model) for member in members) else 0
    written = (_REPLY_TOKENS[0], _REPLY_TOKENS[1] + reasoning)
    if pages:
        known = sum(page is not None for page in pages)
        basis = f"{basis}; {known} of {_counted(len(pages), 'page')} captured"
    return _priced(model, (asked[0] * len(members), asked[1] * len(members)), read, written, prices, basis)


def claims_of(result: Result) -> Range:
    """Return the number of claims of a result, and of its pairs of a claim and a page."""
    sources = [max(1, len(leaf.get("sources") or ())) for leaf in leaves_of(result) if leaf.get("claim")]
    return len(sources), sum(sources)


def past_results(out: Path, task_id: str) -> list[dict[str, Any]]:
    """Return the newest results of a task, at most one per answer, newest first. Skips unreadable files. Blocks."""
    agents = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    folders = [folder for agent in agents for folder in judged_answers(out, agent, task_id)]
    # The name of a result file starts with its time.
    folders.sort(key=lambda folder: getattr(folder.newest_result(), "name", ""), reverse=True)
    found = [newest_result(folder, damaged_ok=True) for folder in folders[:MAX_PAST_RESULTS]]
    return [result for result in found if result is not None]


def total(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum of estimates, without a basis."""
    return sum(estimates, Estimate())


def _asked_members(model: str) -> tuple[ModelName, ...]:
    return tuple(member for member in parse_judge(model).members if member.provider != LEXICAL)


def _is_measured(result: Result, members: int) -> bool:
    """Return whether a result is complete, of a jury of the same size, and has the tokens of its replies."""
    usage = result.get("usage")
    if result.get("status") != "complete" or not isinstance(usage, Mapping):
        return False
    is_same_size = len(members_in(str(result.get("model")))) == members
    return is_same_size and usage.get("calls", 0) > 0 and usage.get("input_tokens", 0) > 0


def _from_results(results: Sequence[Result], model: str, prices: Prices, words: str) -> Estimate:
    usages = [one["usage"] for one in results]
    spread = 1 if len(usages) >= _FEW_RESULTS else _SPREAD

    def per_call(name: str) -> Range:
        values = [usage[name] / usage["calls"] for usage in usages]
        return min(values), max(values)

    calls = [usage["calls"] + usage.get("cached_calls", 0) for usage in usages]
    basis = f"{_counted(len(results), 'earlier result')} {words}"
    read, written = per_call("input_tokens"), per_call("output_tokens")
    return _priced(model, (min(calls) / spread, max(calls) * spread), read, written, prices, basis)


def _priced(model: str, calls: Range, read: Range, written: Range, prices: Prices, basis: str) -> Estimate:
    """Return the estimate of ``calls``, shared equally by the members of a jury. Tokens are those of one call."""
    members = _asked_members(model)
    if not members:
        return Estimate(basis="the lexical judge calls no model")
    listed = [prices.of(member.model) for member in members]
    known = [price for price in listed if price is not None]
    shared = [count / len(members) for count in calls]
    low, high = (
        sum(price.usd(input_tokens=read[end], output_tokens=written[end]) * shared[end] for price in known)
        for end in (0, 1)
    )
    return Estimate(
        calls=calls,
        input_tokens=(calls[0] * read[0], calls[1] * read[1]),
        output_tokens=(calls[0] * written[0], calls[1] * written[1]),
        usd=(low, high) if len(known) == len(members) else None,
        basis=basis,
    )


def _range_json(values: Range, places: int = 0) -> dict[str, float]:
    low, high = (round(value, places) if places else round(value) for value in values)
    return {"low": low, "high": high}


def _sum(one: Range, other: Range) -> Range:
    return one[0] + other[0], one[1] + other[1]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
