"""A client that asks nobody: it says what each request would take, and answers it with a guess.

What is kept already comes from where it is kept, so a rerun costs nothing here either. Values are read out by the
lexical judge; whether a claim holds is drawn, weighted by what the lexical judge makes of the page and by how often
claims of this judge file held before.
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

from judges.analysis.forecasts.figures import Load, Tally
from judges.analysis.forecasts.habits import Habits
from judges.analysis.forecasts.reading import filled_in
from judges.analysis.forecasts.sizes import VERDICT_TOKENS, input_tokens, text_tokens, thinking_tokens
from judges.errors import LLMOutputUnusable, NotKept, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.lexical import MODEL, reply
from judges.llm.pricing import Prices
from judges.llm.remote import sent_params
from judges.llm.roles import role_of
from rubrics.verdict import Usage

LATENCY_S: Final = 0.02
"""So long a guess takes: what a run would ask at once, it has to have asked before the first answer is there."""

SPEAKS_FOR: Final = 5.0
SPEAKS_AGAINST: Final = 8.0
"""How the lexical judge's word changes the odds of a claim about a page. It misses paraphrases, so its "no" weighs
less."""
MAX_CLAIM_CHARS = 2_000
_OF_SPELLINGS = re.compile(r"['\"][^'\"]*['\"] [^'\"]*['\"].*['\"]")
_SAME = re.compile("same|equal|match|identical|equivalent|refer")
SPEAKS_OF_SPELLINGS: Final = 20.0
"""The same for claims that compare two spellings, which it does well."""

Kept: TypeAlias = Callable[[LLMRequest], Awaitable[LLMReply | None]]
KeyOf: TypeAlias = Callable[[LLMRequest], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """How claims come out in one guessed run. ``always``: every claim so; else they are drawn by ``seed``.

    ``outline``: values are taken from the answer's outline alone. ``split``: the first two votes on every claim differ.
    The factors are for what can be wrong about sizes, and ``prefix_cache`` prices what the provider has read before as
    read from its cache.
    """

    seed: int = 0
    always: bool | None = None
    split: bool = False
    outline: bool = False
    input_factor: float = 1.0
    output_factor: float = 1.0
    prefix_cache: bool = False


LIKELY: Final = tuple(Mood(seed=seed) for seed in range(3))
BOUNDS: Final = (
    Mood(always=False, input_factor=0.85, output_factor=0.5, prefix_cache=True),
    Mood(always=True, split=True, input_factor=1.25, output_factor=2.0),
)


@dataclass(slots=True)
class Memo:
    """What the lexical judge made of requests: the same for every guessed run of an answer. JSON text, or its error."""

    replies: dict[Any, str | LLMOutputUnusable] = field(default_factory=dict)


class GuessingLLM:
    """An ``LLMClient`` for one guessed run. ``kept`` gives replies that need not be asked for, ``key_of`` tells
    requests apart.
    """

    def __init__(
        self,
        *,
        habits: Habits,
        mood: Mood,
        memo: Memo,
        tally: Tally,
        kept: Kept,
        key_of: KeyOf,
        unknown_page: str = "",
        prices: Prices | None = None,
    ) -> None:
        """``unknown_page`` is the text that stands for pages nobody has seen yet: it speaks for nothing."""
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
        """Guess. Raises LLMOutputUnusable where nothing can be guessed."""
        role = role_of(request)
        kept = await self._kept(request)
        if kept is not None:
            self._tally.add(role, Load(cached_calls=1))
            return kept
        if request.kept_only:
            raise NotKept
        key = await asyncio.to_thread(self._key_of, request)
        again = key in self._asked
        self._asked.add(key)
        text, parsed = await self._guess(request)
        load = Load(cached_calls=1) if again else self._load(request, text)
        self._tally.add(role, load)  # once it is sent: providers charge for what is called off, too
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
        """Nothing was opened."""

    def _load(self, request: LLMRequest, text: str) -> Load:
        if request.model == MODEL:
            return Load(calls=1)
        read = self._read(request) * self._mood.input_factor
        written = self._written(request, text) * self._mood.output_factor
        price = self._prices.of(request.model)
        if price is None:
            self._tally.unpriced.add(request.model)
            return Load(calls=1, input_tokens=read, output_tokens=written, usd=None, usd_batch=None)
        cached = read if self._mood.prefix_cache and request.vote > 0 else 0.0
        tokens = {"input_tokens": read, "output_tokens": written}
        return Load(
            calls=1,
            **tokens,
            usd=price.usd(**tokens, cached_tokens=cached),
            usd_batch=price.batch_usd(**tokens),
        )

    def _read(self, request: LLMRequest) -> float:
        before = self._habits.said.get(_claim(request)) if request.purpose == "verify" else None
        if before is not None and before.input_tokens and _asks_the_same(before.evidence, before.prompt, request):
            return before.input_tokens
        return input_tokens(request.messages)

    def _written(self, request: LLMRequest, text: str) -> float:
        known = {"verify": self._habits.verdict_tokens, "extract": self._habits.extract_tokens}.get(request.purpose)
        if known is not None:
            return known
        guessed = VERDICT_TOKENS if request.purpose == "verify" else text_tokens(text)
        return guessed + thinking_tokens(request.model, sent_params(request).get("reasoning_effort"))

    async def _guess(self, request: LLMRequest) -> tuple[str, BaseModel | None]:
        if request.schema is None:
            return "-", None
        if request.purpose == "free":
            return _as(request.schema, _emptiest(request.schema.model_json_schema()))
        if request.purpose == "extract" and self._mood.outline:
            return await asyncio.to_thread(_extracted, request, request.schema, None)
        said = await self._lexical(request)
        if request.model == MODEL:
            if isinstance(said, LLMOutputUnusable):
                raise said
            return said, request.schema.model_validate_json(said)
        if request.purpose == "extract":
            return await asyncio.to_thread(_extracted, request, request.schema, said)
        if isinstance(said, LLMOutputUnusable):
            raise said
        verdict = json.loads(said)
        return _as(request.schema, {**verdict, "result": self._vote(request, holds=bool(verdict["result"]))})

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
        """One vote: all votes on a claim are alike, but for the share of claims on which they differ."""
        verdict = self._mood.always
        if verdict is None:
            before = self._habits.said.get(_claim(request))
            likely = self._likelihood(request, holds=holds)
            verdict = before.passed if before is not None else self._drawn(request, "holds") < likely
        differs = self._mood.split or self._drawn(request, "split") < self._habits.split_rate
        return not verdict if differs and request.vote == 1 else verdict

    def _likelihood(self, request: LLMRequest, *, holds: bool) -> float:
        odds = self._habits.pass_rate / (1 - self._habits.pass_rate)
        if "page" in request.parts:
            if request.parts["page"] != self._unknown_page:
                odds *= SPEAKS_FOR if holds else 1 / SPEAKS_AGAINST
        elif _speaks_of_spellings(request.parts.get("claim", "")[:MAX_CLAIM_CHARS]):
            odds *= SPEAKS_OF_SPELLINGS if holds else 1 / SPEAKS_OF_SPELLINGS
        return odds / (1 + odds)

    def _drawn(self, request: LLMRequest, what: str) -> float:
        """A number in [0, 1) that is the same for every vote on a claim; those of the likely runs lie evenly."""
        parts = (what, *_claim(request), request.parts.get("url", ""))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        return (int.from_bytes(digest[:8], "big") / 2**64 + self._mood.seed / len(LIKELY)) % 1.0


def _speaks_of_spellings(claim: str) -> bool:
    """Whether a claim says of two quoted spellings that they mean the same."""
    return _SAME.search(claim) is not None and _OF_SPELLINGS.search(claim) is not None


def _extracted(
    request: LLMRequest, schema: type[BaseModel], said: str | LLMOutputUnusable | None
) -> tuple[str, BaseModel]:
    """Values as they might be read out; ``said`` is what the lexical judge read, if it was asked and could."""
    shape = schema.model_json_schema()
    read = json.loads(said) if isinstance(said, str) else _emptiest(shape)
    text = request.parts.get("page", request.parts.get("answer", ""))
    try:
        return _as(schema, filled_in(read, shape, request=request.parts.get("prompt", ""), text=text))
    except LLMOutputUnusable:
        return _as(schema, read)


def _claim(request: LLMRequest) -> tuple[str, str]:
    return request.parts.get("claim", ""), request.parts.get("instruction", "")


def _asks_the_same(evidence: tuple[str, ...], prompt: str | None, request: LLMRequest) -> bool:
    return evidence == request.evidence and prompt == request.prompt


def _as(schema: type[BaseModel], value: Any) -> tuple[str, BaseModel]:
    """A value as a reply. Raises LLMOutputUnusable where it does not fit."""
    try:
        parsed = schema.model_validate(value)
    except ValidationError as error:
        raise LLMOutputUnusable(UnusableKind.OFF_SCHEMA, f"nothing can be guessed for {schema.__name__}") from error
    return parsed.model_dump_json(by_alias=True), parsed


def _emptiest(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The emptiest value of a JSON Schema, as far as it is simple."""
    root = root or schema
    if "$ref" in schema:
        return _emptiest(root.get("$defs", {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {}), root)
    for name in ("default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    options = schema.get("anyOf") or ()
    if options:
        return None if any(option.get("type") == "null" for option in options) else _emptiest(options[0], root)
    if schema.get("type") == "object":
        return {name: _emptiest(each, root) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(schema.get("type")))
