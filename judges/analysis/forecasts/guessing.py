"""Simulated model client for forecasts: estimates the size of each request and returns a guessed reply.

Cached replies are used as they are, so the forecast of a rerun costs nothing. Extracted values come from the lexical
judge. The verdict on a claim is sampled; its probability depends on the lexical judge's verdict and on the pass rate of
earlier results of the judge file.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from judges.analysis.forecasts.figures import EstimatedUsage, UsageByRole
from judges.analysis.forecasts.habits import PastResults
from judges.analysis.forecasts.reading import complete_from_outline
from judges.analysis.forecasts.sizes import VERDICT_TOKENS, input_tokens, text_tokens, thinking_tokens
from judges.errors import LLMOutputUnusable, ReplyNotCached, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.lexical import MODEL, reply
from judges.llm.pricing import Prices
from judges.llm.remote import sent_params
from judges.llm.roles import role_of
from rubrics.verdict import Usage

LATENCY_S: Final = 0.02
"""Duration of a simulated request. It lets requests that a real run sends concurrently start before the first reply
arrives.
"""

ODDS_IF_LEXICAL_PASSES: Final = 5.0
ODDS_IF_LEXICAL_FAILS: Final = 8.0
"""Odds factors of the lexical judge's verdict on a claim about a page.

``ODDS_IF_LEXICAL_PASSES`` multiplies the odds if the verdict is positive, ``ODDS_IF_LEXICAL_FAILS`` divides them if it
is negative.
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
        habits: PastResults,
        mood: RunAssumptions,
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
        self._habits = habits
        self._mood = mood
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
        kept = await self._kept(request)
        if kept is not None:
            self._tally.add(role, EstimatedUsage(cached_calls=1))
            return kept
        if request.cache_only:
            raise ReplyNotCached
        key = await asyncio.to_thread(self._key_of, request)
        again = key in self._asked
        self._asked.add(key)
        text, parsed = await self._guess(request)
        load = EstimatedUsage(cached_calls=1) if again else self._load(request, text)
        self._tally.add(role, load)  # on sending, because providers charge for cancelled requests, too
        await asyncio.sleep(LATENCY_S)
        usage = Usage(
            calls=round(load.calls),
            cached_calls=round(load.cached_calls),
            input_tokens=round(load.input_tokens),
            output_tokens=round(load.output_tokens),
            usd=load.usd,
        )
        return LLMReply(text=text, parsed=parsed, model=request.model, usage=usage, cached=again)

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""

    def _load(self, request: LLMRequest, text: str) -> EstimatedUsage:
        if request.model == MODEL:
            return EstimatedUsage(calls=1)
        read = self._input_tokens(request) * self._mood.input_factor
        written = self._output_tokens(request, text) * self._mood.output_factor
        price = self._prices.of(request.model)
        if price is None:
            self._tally.unpriced.add(request.model)
            return EstimatedUsage(calls=1, input_tokens=read, output_tokens=written, usd=None, usd_batch=None)
        cached = read if self._mood.prefix_cache and request.vote > 0 else 0.0
        tokens = {"input_tokens": read, "output_tokens": written}
        return EstimatedUsage(
            calls=1,
            **tokens,
            usd=price.usd(**tokens, cached_tokens=cached),
            usd_batch=price.batch_usd(**tokens),
        )

    def _input_tokens(self, request: LLMRequest) -> float:
        before = self._habits.said.get(_claim(request)) if request.purpose == "verify" else None
        if before is not None and before.input_tokens and _same_question(before.evidence, before.prompt, request):
            return before.input_tokens
        return input_tokens(request.messages)

    def _output_tokens(self, request: LLMRequest, text: str) -> float:
        known = {"verify": self._habits.verdict_tokens, "extract": self._habits.extract_tokens}.get(request.purpose)
        if known is not None:
            return known
        guessed = VERDICT_TOKENS if request.purpose == "verify" else text_tokens(text)
        return guessed + thinking_tokens(request.model, sent_params(request).get("reasoning_effort"))

    async def _guess(self, request: LLMRequest) -> tuple[str, BaseModel | None]:
        if request.schema is None:
            return "-", None
        if request.purpose == "free":
            return _as_reply(request.schema, _minimal_value(request.schema.model_json_schema()))
        if request.purpose == "extract" and self._mood.outline:
            return await asyncio.to_thread(_extraction_reply, request, request.schema, None)
        lexical_reply = await self._lexical(request)
        if request.model == MODEL:
            if isinstance(lexical_reply, LLMOutputUnusable):
                raise lexical_reply
            return lexical_reply, request.schema.model_validate_json(lexical_reply)
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
        key = (request.purpose, request.schema and request.schema.__name__, plain, request.evidence)
        if key not in self._memo.replies:
            try:
                self._memo.replies[key] = (await asyncio.to_thread(reply, request)).model_dump_json(by_alias=True)
            except LLMOutputUnusable as error:
                self._memo.replies[key] = error
        return self._memo.replies[key]

    def _vote(self, request: LLMRequest, *, holds: bool) -> bool:
        """Return one vote.

        All votes on a claim are equal, except for the expected share of claims with differing votes.
        """
        verdict = self._mood.always
        if verdict is None:
            before = self._habits.said.get(_claim(request))
            likely = self._probability(request, holds=holds)
            verdict = before.passed if before is not None else self._uniform(request, "holds") < likely
        differs = self._mood.split or self._uniform(request, "split") < self._habits.split_rate
        return not verdict if differs and request.vote == 1 else verdict

    def _probability(self, request: LLMRequest, *, holds: bool) -> float:
        odds = self._habits.pass_rate / (1 - self._habits.pass_rate)
        if "page" in request.parts:
            if request.parts["page"] != self._unknown_page:
                odds *= ODDS_IF_LEXICAL_PASSES if holds else 1 / ODDS_IF_LEXICAL_FAILS
        elif _compares_spellings(request.parts.get("claim", "")[:MAX_CLAIM_CHARS]):
            odds *= SPELLING_ODDS if holds else 1 / SPELLING_ODDS
        return odds / (1 + odds)

    def _uniform(self, request: LLMRequest, what: str) -> float:
        """Return a number in [0, 1) that is equal for all votes on a claim and evenly spaced over the likely runs."""
        parts = (what, *_claim(request), request.parts.get("url", ""))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        return (int.from_bytes(digest[:8], "big") / 2**64 + self._mood.seed / len(LIKELY)) % 1.0


def _compares_spellings(claim: str) -> bool:
    """Return whether a claim states that two quoted spellings mean the same."""
    return _SAME.search(claim) is not None and _TWO_QUOTED.search(claim) is not None


def _extraction_reply(
    request: LLMRequest, schema: type[BaseModel], lexical_reply: str | LLMOutputUnusable | None
) -> tuple[str, BaseModel]:
    """Return guessed extracted values. ``lexical_reply`` may be an error; None: not asked."""
    shape = schema.model_json_schema()
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


def _as_reply(schema: type[BaseModel], value: Any) -> tuple[str, BaseModel]:
    """Return a value as reply text and parsed object.

    Raises:
        LLMOutputUnusable: the value does not match the schema.
    """
    try:
        parsed = schema.model_validate(value)
    except ValidationError as error:
        raise LLMOutputUnusable(
            UnusableKind.OFF_SCHEMA, f"no reply can be guessed for schema {schema.__name__}"
        ) from error
    return parsed.model_dump_json(by_alias=True), parsed


def _minimal_value(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return the minimal value of a simple JSON Schema."""
    root = root or schema
    if "$ref" in schema:
        return _minimal_value(root.get("$defs", {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), root)
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    options = schema.get("anyOf") or ()
    if options:
        return None if any(option.get("type") == "null" for option in options) else _minimal_value(options[0], root)
    if schema.get("type") == "object":
        return {name: _minimal_value(each, root) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(schema.get("type")))
