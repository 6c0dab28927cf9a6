"""Simulated model client for forecasts: estimates the size of each request and returns a guessed reply.

Cached replies are used as they are, so the forecast of a rerun costs nothing. Extracted values come from the lexical
judge. The verdict on a claim is sampled; its probability depends on the lexical judge's verdict and on the pass rate of
earlier results of the judge file.

The lexical judge reads values that follow their labels. If it finds few values, the entries of the answer (numbered
items, otherwise headed sections) fill the schema: the n-th entry for "number n", all entries for a list, with their
names and URLs. The values may be wrong, but their number is about right, and the cost depends on the number. Pure.

A token has about four characters of English; in most other scripts a character is more than half a token
(https://help.openai.com/en/articles/4936856). A screenshot counts about as many tokens as OpenAI charges at high
detail. Token counts of past runs of a judge file take precedence over these estimates.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from answers.citations import unique_urls
from judges.analysis.forecasts.forecast import EstimatedUsage, UsageByRole
from judges.analysis.forecasts.past_results import PastResults
from judges.errors import LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.llm.client import LLMReply, LLMRequest, role_of
from judges.llm.families import is_reasoning_model
from judges.llm.json_schema import ReplyType, as_reply, fit, json_schema_of, options, resolve, schema_name
from judges.llm.lexical import MODEL, reply
from judges.llm.pricing import Prices
from judges.llm.remote import sent_params
from rubrics.verdict import Usage

LATENCY_S: Final = 0.02
"""Duration of a simulated request. It lets requests that a real run sends concurrently start before the first reply
arrives.
"""

ODDS_IF_LEXICAL_PASSES: Final = 5.0
ODDS_IF_LEXICAL_FAILS: Final = 8.0
"""Odds factors of the lexical judge's verdict on a claim about a page.

``ODDS_IF_LEXICAL_PASSES`` multiplies the odds if the verdict is positive, ``ODDS_IF_LEXICAL_FAILS`` divides them if it
is negative. Of claims without a page, only a positive verdict counts: the answer contains the claim.
"""
MAX_CLAIM_CHARS = 2_000
_TWO_QUOTED = re.compile(r"['\"][^'\"]*['\"] [^'\"]*['\"].*['\"]")
_SAME = re.compile("same|equal|match|identical|equivalent|refer")
SPELLING_ODDS: Final = 20.0
"""Odds factor for claims that compare two spellings, which the lexical judge decides reliably."""

CachedReply: TypeAlias = Callable[[LLMRequest], Awaitable[LLMReply | None]]
KeyOf: TypeAlias = Callable[[LLMRequest], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAssumptions:
    """Assumptions of one simulated run.

    ``always`` is the verdict on every claim; None: verdicts are sampled with ``seed``. ``outline``: extracted values
    come only from the answer's outline. ``split``: the first two votes on every claim differ. The factors cover errors
    in estimated sizes. ``prefix_cache``: later votes on a claim are priced as reads from the provider's prompt cache.
    """

    seed: int = 0
    always: bool | None = None
    split: bool = False
    outline: bool = False
    input_factor: float = 1.0
    output_factor: float = 1.0
    prefix_cache: bool = False


LIKELY: Final = tuple(RunAssumptions(seed=seed) for seed in range(3))
BOUNDS: Final = (
    RunAssumptions(always=False, input_factor=0.85, output_factor=0.5, prefix_cache=True),
    RunAssumptions(always=True, split=True, input_factor=1.25, output_factor=2.0),
)


@dataclass(slots=True)
class LexicalReplies:
    """Replies of the lexical judge, shared by all simulated runs of an answer: JSON text or the error."""

    replies: dict[Any, str | LLMOutputUnusable] = field(default_factory=dict)


class SimulatedLLM:
    """Simulated ``LLMClient`` for one run. ``kept`` returns cached replies, ``key_of`` the cache key of a request."""

    def __init__(
        self,
        *,
        past: PastResults,
        assumptions: RunAssumptions,
        memo: LexicalReplies,
        tally: UsageByRole,
        kept: CachedReply,
        key_of: KeyOf,
        unknown_page: str = "",
        prices: Prices | None = None,
    ) -> None:
        """``unknown_page`` is the placeholder text of pages without a capture.

        It does not affect the probability that a claim passes.
        """
        self._past = past
        self._assumptions = assumptions
        self._memo = memo
        self._tally = tally
        self._kept = kept
        self._key_of = key_of
        self._unknown_page = unknown_page
        self._prices = prices or Prices()
        self._asked: set[str] = set()

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Return a guessed reply.

        Raises:
            LLMOutputUnusable: no reply can be guessed.
            ReplyNotCached: ``cache_only`` is set and no cached reply exists.
        """
        role = role_of(request)
        cached = await self._kept(request)
        if cached is not None:
            self._tally.add(role, EstimatedUsage(cached_calls=1))
            return cached
        if request.cache_only:
            raise ReplyNotCached
        key = await asyncio.to_thread(self._key_of, request)
        is_repeated = key in self._asked
        self._asked.add(key)
        text, parsed = await self._guess(request)
        load = EstimatedUsage(cached_calls=1) if is_repeated else self._load(request, text)
        self._tally.add(role, load)  # on sending, because providers charge for cancelled requests, too
        await asyncio.sleep(LATENCY_S)
        usage = Usage(
            calls=round(load.calls),
            cached_calls=round(load.cached_calls),
            input_tokens=round(load.input_tokens),
            output_tokens=round(load.output_tokens),
            usd=load.usd,
        )
        return LLMReply(text=text, parsed=parsed, model=request.model, usage=usage, cached=is_repeated)

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""

    def _load(self, request: LLMRequest, text: str) -> EstimatedUsage:
        if request.model == MODEL:
            return EstimatedUsage(calls=1)
        read = self._input_tokens(request) * self._assumptions.input_factor
        written = self._output_tokens(request, text) * self._assumptions.output_factor
        price = self._prices.of(request.model)
        if price is None:
            self._tally.unpriced.add(request.model)
            return EstimatedUsage(calls=1, input_tokens=read, output_tokens=written, usd=None, usd_batch=None)
        cached = read if self._assumptions.prefix_cache and request.vote > 0 else 0.0
        tokens = {"input_tokens": read, "output_tokens": written}
        return EstimatedUsage(
            calls=1,
            **tokens,
            usd=price.usd(**tokens, cached_tokens=cached),
            usd_batch=price.batch_usd(**tokens),
        )

    def _input_tokens(self, request: LLMRequest) -> float:
        before = self._past.earlier_verdicts.get(_claim(request)) if request.purpose == "verify" else None
        if before is not None and before.input_tokens and _same_question(before.evidence, before.prompt, request):
            return before.input_tokens
        return input_tokens(request.messages)

    def _output_tokens(self, request: LLMRequest, text: str) -> float:
        known = {"verify": self._past.verdict_tokens, "extract": self._past.extract_tokens}.get(request.purpose)
        if known is not None:
            return known
        guessed = VERDICT_TOKENS if request.purpose == "verify" else text_tokens(text)
        return guessed + thinking_tokens(request.model, sent_params(request).get("reasoning_effort"))

    async def _guess(self, request: LLMRequest) -> tuple[str, BaseModel | None]:
        if request.schema is None:
            return "-", None
        if request.purpose == "free":
            return _as_reply(request.schema, _minimal_value(json_schema_of(request.schema)))
        if request.purpose == "extract" and self._assumptions.outline:
            return await asyncio.to_thread(_extraction_reply, request, request.schema, None)
        lexical_reply = await self._lexical(request)
        if request.model == MODEL:
            if isinstance(lexical_reply, LLMOutputUnusable):
                raise lexical_reply
            return as_reply(json.loads(lexical_reply), request.schema)
        if request.purpose == "extract":
            return await asyncio.to_thread(_extraction_reply, request, request.schema, lexical_reply)
        if isinstance(lexical_reply, LLMOutputUnusable):
            raise lexical_reply
        verdict = json.loads(lexical_reply)
        return _as_reply(request.schema, {**verdict, "result": self._vote(request, holds=bool(verdict["result"]))})

    async def _lexical(self, request: LLMRequest) -> str | LLMOutputUnusable:
        plain = tuple(
            sorted((name, text) for name, text in request.parts.items() if name not in ("page", "page_links"))
        )
        key = (request.purpose, request.schema_name, plain, request.evidence)
        if key not in self._memo.replies:
            try:
                self._memo.replies[key], _ = await asyncio.to_thread(reply, request)
            except LLMOutputUnusable as error:
                self._memo.replies[key] = error
        return self._memo.replies[key]

    def _vote(self, request: LLMRequest, *, holds: bool) -> bool:
        """Return one vote.

        All votes on a claim are equal, except for the expected share of claims with differing votes.
        """
        verdict = self._assumptions.always
        if verdict is None:
            before = self._past.earlier_verdicts.get(_claim(request))
            probability = self._probability(request, holds=holds)
            verdict = before.passed if before is not None else self._uniform(request, "holds") < probability
        differs = self._assumptions.split or self._uniform(request, "split") < self._past.split_rate
        return not verdict if differs and request.vote == 1 else verdict

    def _probability(self, request: LLMRequest, *, holds: bool) -> float:
        odds = self._past.pass_rate / (1 - self._past.pass_rate)
        if "page" in request.parts:
            if request.parts["page"] != self._unknown_page:
                odds *= ODDS_IF_LEXICAL_PASSES if holds else 1 / ODDS_IF_LEXICAL_FAILS
        elif _compares_spellings(request.parts.get("claim", "")[:MAX_CLAIM_CHARS]):
            odds *= SPELLING_ODDS if holds else 1 / SPELLING_ODDS
        elif holds:
            odds *= ODDS_IF_LEXICAL_PASSES
        return odds / (1 + odds)

    def _uniform(self, request: LLMRequest, purpose: str) -> float:
        """Return a number in [0, 1) that is equal for all votes on a claim and evenly spaced over the likely runs."""
        parts = (purpose, *_claim(request), request.parts.get("url", ""))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        return (int.from_bytes(digest[:8], "big") / 2**64 + self._assumptions.seed / len(LIKELY)) % 1.0


def _compares_spellings(claim: str) -> bool:
    """Return whether a claim states that two quoted spellings mean the same."""
    return _SAME.search(claim) is not None and _TWO_QUOTED.search(claim) is not None


def _extraction_reply(
    request: LLMRequest, schema: ReplyType, lexical_reply: str | LLMOutputUnusable | None
) -> tuple[str, BaseModel | None]:
    """Return guessed extracted values. ``lexical_reply`` may be an error; None: not asked."""
    shape = json_schema_of(schema)
    read = json.loads(lexical_reply) if isinstance(lexical_reply, str) else _minimal_value(shape)
    text = request.parts.get("page", request.parts.get("answer", ""))
    try:
        return _as_reply(schema, complete_from_outline(read, shape, request=request.parts.get("prompt", ""), text=text))
    except LLMOutputUnusable:
        return _as_reply(schema, read)


def _claim(request: LLMRequest) -> tuple[str, str]:
    return request.parts.get("claim", ""), request.parts.get("instruction", "")


def _same_question(evidence: tuple[str, ...], prompt: str | None, request: LLMRequest) -> bool:
    return evidence == request.evidence and prompt == request.prompt


def _as_reply(schema: ReplyType, value: Any) -> tuple[str, BaseModel | None]:
    """Return a value as reply text and parsed object.

    Raises:
        LLMOutputUnusable: the value does not match the schema.
    """
    described = json_schema_of(schema)
    try:
        return as_reply(fit(value, described, described), schema)
    except ValueError as error:
        raise LLMOutputUnusable(
            UnusableKind.OFF_SCHEMA, f"no reply can be guessed for schema {schema_name(schema)}"
        ) from error


def _minimal_value(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return the minimal value of a simple JSON Schema."""
    root = root or schema
    schema = resolve(schema, root)
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or ()
    if choices:
        return None if any(choice.get("type") == "null" for choice in choices) else _minimal_value(choices[0], root)
    if schema.get("type") == "object":
        return {name: _minimal_value(each, root) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(schema.get("type")))


MIN_FILLED_SHARE: Final = 0.5
"""Minimum share of filled fields at which the lexical reading is used."""
MAX_OUTLINE_ENTRIES: Final = 50

_NUMBERED = re.compile(r"^[ \t]{0,3}\d{1,3}[.)]\s+", re.MULTILINE)
_HEADED = re.compile(r"^#{2,6}\s+", re.MULTILINE)
_ITEM_NUMBER = re.compile(
    r"\b(?:number|no\.|nr\.|#)\s?(\d{1,3})\b|\b(first|second|third|fourth|fifth|sixth)\b", re.IGNORECASE
)
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
_URL_FIELD = re.compile(r"url|link|source|citation|website", re.IGNORECASE)
_NAME_FIELDS: Final = frozenset({"name", "title", "heading"})
_NAME_CHARS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of an answer."""

    name: str
    urls: tuple[str, ...] = ()


def complete_from_outline(read: Any, schema: Mapping[str, Any], *, request: str, text: str) -> Any:
    """Complete the lexical reading ``read`` (JSON) from the outline of ``text`` if it has few values."""
    outlined = entries(text)
    number = _item_number(request)
    if number is not None and 0 < number <= len(outlined):
        return _value(schema, "", outlined[number - 1 : number], schema)
    guessed = _value(schema, "", outlined, schema)
    return (
        _fill_blank_strings(read, guessed) if _filled_share(read) >= MIN_FILLED_SHARE else _fill_missing(read, guessed)
    )


def entries(text: str) -> list[Entry]:
    """Return the items of a text: numbered items, otherwise headed sections, otherwise the whole text as one item.

    A numbered item ends at the next heading, so the list of sources at the end of an answer is not part of the last.
    """
    for mark in (_NUMBERED, _HEADED):
        starts = [match.start() for match in mark.finditer(text)]
        if len(starts) > 1:
            parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
            if mark is _NUMBERED:
                parts = [_HEADED.split(part, maxsplit=1)[0] for part in parts]
            return [_entry(mark.sub("", part, count=1)) for part in parts[:MAX_OUTLINE_ENTRIES]]
    return [_entry(text)]


def _entry(text: str) -> Entry:
    bold = re.match(r"\W*\*\*(.+?)\*\*", text)
    name = bold[1] if bold else re.split(r"[\n:(]|\s[\u2013\u2014-]\s", text.strip(), maxsplit=1)[0]
    return Entry(name=name.strip(" *#_")[:_NAME_CHARS], urls=tuple(unique_urls(text)))


def _item_number(request: str) -> int | None:
    """Return the number of the item that a request names, or None."""
    match = _ITEM_NUMBER.search(request)
    if match is None:
        return None
    return int(match[1]) if match[1] else _ORDINALS.index(match[2].lower()) + 1


def _filled_share(read: Any) -> float:
    """Return the share of filled fields, including those of records in lists."""
    fields = list(_fields(read))
    return sum(fields) / len(fields) if fields else 0.0


def _fields(value: Any) -> Iterator[bool]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _fields(each)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for each in value:
            yield from _fields(each)
    else:
        yield value not in (None, "", [])


def _fill_blank_strings(read: Any, guessed: Any) -> Any:
    """Fill blank strings with guessed words, because the lexical judge often misses a value.

    URLs and lists are not changed.
    """
    if isinstance(read, Mapping) and isinstance(guessed, Mapping):
        return {
            name: value if _URL_FIELD.search(name) else _fill_blank_strings(value, guessed.get(name))
            for name, value in read.items()
        }
    if isinstance(read, list) and isinstance(guessed, list) and guessed:
        return [_fill_blank_strings(each, guessed[min(n, len(guessed) - 1)]) for n, each in enumerate(read)]
    return guessed if read in (None, "") and isinstance(guessed, str) else read


def _fill_missing(read: Any, guessed: Any) -> Any:
    """Replace missing values with guessed ones."""
    if isinstance(read, Mapping) and isinstance(guessed, Mapping):
        return {name: _fill_missing(value, guessed.get(name)) for name, value in read.items()}
    return guessed if read in (None, "", []) and guessed is not None else read


def _value(schema: Mapping[str, Any], name: str, outlined: Sequence[Entry], root: Mapping[str, Any]) -> Any:
    """Return an instance of a JSON Schema, filled from the entries."""
    schema = resolve(schema, root)
    choices = options(schema, root)
    if choices != [schema]:
        return _value(choices[0], name, outlined, root) if choices and outlined else None
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {field: _value(each, field, outlined, root) for field, each in schema.get("properties", {}).items()}
        case "array":
            if _URL_FIELD.search(name):
                return [url for entry in outlined for url in entry.urls]
            return [_value(schema.get("items", {}), name.removesuffix("s"), [entry], root) for entry in outlined]
        case "string":
            return _text(name, outlined)
        case kind:
            return {"integer": 1, "number": 1.0, "boolean": True}.get(str(kind))


def _text(name: str, outlined: Sequence[Entry]) -> str:
    if not outlined:
        return ""
    if _URL_FIELD.search(name):
        return outlined[0].urls[0] if outlined[0].urls else ""
    return outlined[0].name if name in _NAME_FIELDS else f"the {name} of {outlined[0].name}"


CHARS_PER_TOKEN: Final = 4.0
FOREIGN_CHARS_PER_TOKEN: Final = 1.6
TOKENS_PER_IMAGE: Final = 1_000
VERDICT_TOKENS: Final = 45
"""Output tokens of a verdict with reasoning and quotes."""
THINKING_TOKENS: Final = 400
"""Reasoning tokens of one reply at the provider's default effort."""
EFFORT_TOKENS: Final = {
    "none": 0,
    "minimal": 50,
    "low": 150,
    "medium": 400,
    "high": 1_000,
    "xhigh": 2_000,
    "max": 4_000,
}
"""Reasoning tokens of one reply by effort. Estimates, replaced by those of past runs."""


def text_tokens(text: str) -> float:
    """Return the estimated tokens of a text.

    >>> text_tokens("Four characters!"), round(text_tokens("東京都"), 1)
    (4.0, 1.9)
    """
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return plain / CHARS_PER_TOKEN + (len(text) - plain) / FOREIGN_CHARS_PER_TOKEN


def input_tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    """Return the estimated tokens of messages."""
    return sum(_content_tokens(message.get("content")) for message in messages)


def thinking_tokens(model: str, effort: str | None = None) -> float:
    """Return the estimated reasoning tokens of a reply, which count as output. ``effort``: as requested."""
    if effort is not None:
        return EFFORT_TOKENS.get(effort, THINKING_TOKENS)
    return THINKING_TOKENS if is_reasoning_model(model) else 0.0


def _content_tokens(content: Any) -> float:
    if isinstance(content, str):
        return text_tokens(content)
    total = 0.0
    for part in content or ():
        total += text_tokens(str(part.get("text", ""))) if part.get("type") == "text" else TOKENS_PER_IMAGE
    return total
