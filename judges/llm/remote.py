"""Client for a remote model: retry, circuit breaker, budget, one repair request, cost.

It adds to a provider adapter everything that does not depend on the provider. One ``complete`` sends the request and,
if the reply is unusable, one repair request. If the provider rejects the request as too long, both are repeated with
the beginning of the page only. A server whose request format is not yet known may receive further requests.

Context windows of models are learned from errors and replies, in memory, for one server. An error for a request that is
too long may name the limit, the size of the request, both or neither. Missing counts come from earlier errors and
replies of the model, and from an estimate of the request's tokens.

A shortened page can support a claim but cannot refute it, because the evidence may be in the omitted part. The reply
therefore counts only if it supports the claim.

Cached replies and call logs store only the number of characters that were kept. If you change how a page is shortened,
or ``SHORTENED_PAGE_NOTICE``, also change ``encoding.KEY_VERSION``.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from judges.errors import (
    LLMError,
    LLMOutputUnusable,
    LLMRejected,
    LLMUnavailable,
    RejectionScope,
    ReplyNotCached,
    ShorterPage,
    UnusableKind,
    UnusableReply,
)
from judges.llm.circuit import CircuitBreaker
from judges.llm.client import LLMReply, LLMRequest, has_images, role_of
from judges.llm.learned_formats import Images
from judges.llm.models import ModelList, missing_model_message, params_for
from judges.llm.parameters import LONG_EFFORTS
from judges.llm.pricing import Prices, RequestBudget, estimate_cost, estimate_tokens
from judges.llm.provider_adapter import FinishReason, ProviderAdapter, RawReply
from judges.llm.replies import read_reply
from judges.llm.request_formats import DEFAULT_OUTPUT_LIMIT, RequestFormat
from judges.llm.retry import Retrier, RetryPolicy
from judges.prompting.prompts import load_prompt
from rubrics.verdict import Reason, Usage

_SAFETY_MARGIN: Final = 0.85
_SHARE_WITHOUT_LIMIT: Final = 0.5
_STATUS = re.compile(r"\A\w+: \d{3} ")
_NUMBER = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:[,_]\d{3})+|\d{3,})(?![\w-]|\.\d)")
_LIMIT_BEFORE = re.compile(
    r"(?:max(?:imum)?|limit|at most|up to|allow(?:ed|s)?|context[ _-](?:length|window|size)|(?:less|fewer|longer) than"
    r"|cannot exceed|exceed(?:s|ed)?|available|[<>]=?)\D{0,60}\Z|\brange\b.{0,40}\Z",
    re.IGNORECASE | re.DOTALL,
)
_LIMIT_AFTER = re.compile(r"\W{0,3}(?:tokens?\W+)?(?:max(?:imum)?|limit|allowed|context)\b", re.IGNORECASE)
_LOOKBEHIND_CHARS: Final = 100
_MAX_REFUSAL_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Token counts in an error message: the limit of the model, and the size of the request."""

    limit: int | None = None
    requested: int | None = None


@dataclass(slots=True)
class _Window:
    """Context window of one model.

    ``scale`` is the ratio of its token count to the estimate. ``largest_accepted`` and
    ``smallest_rejected`` are estimates.
    """

    limit: int | None = None
    scale: float = 1.0
    largest_accepted: int = 0
    smallest_rejected: int | None = None


class ContextWindows:
    """Context windows of the models of one server."""

    def __init__(self) -> None:
        self._models: dict[str, _Window] = {}

    def record_accepted(self, request: LLMRequest, input_tokens: int | None) -> None:
        """Record an accepted request; ``input_tokens`` is the provider's count."""
        window, size = self._window_for(request.model), estimate_tokens(request.messages)
        window.largest_accepted = max(window.largest_accepted, size)
        if input_tokens and size and not has_images(request):
            window.scale = input_tokens / size

    def record_rejected(self, request: LLMRequest, refusal: str) -> float:
        """Record a request that was rejected as too long. Return the share of it that the model probably accepts."""
        window, size = self._window_for(request.model), max(1, estimate_tokens(request.messages))
        counts = parse_token_counts(refusal)
        window.limit = counts.limit or window.limit
        if counts.requested:
            window.scale = counts.requested / size
        previous, window.smallest_rejected = window.smallest_rejected, min(size, window.smallest_rejected or size)
        tokens = counts.requested or size * window.scale
        if window.limit is not None and window.limit < tokens:
            return _SAFETY_MARGIN * window.limit / tokens
        share = _SHARE_WITHOUT_LIMIT * min(size, previous or size) / size
        return max(share, _SAFETY_MARGIN * window.largest_accepted / size) if window.largest_accepted < size else share

    def _window_for(self, model: str) -> _Window:
        return self._models.setdefault(model, _Window())


def parse_token_counts(refusal: str) -> TokenCounts:
    """Parse the token counts in an error message.

    >>> parse_token_counts("openai: 400 maximum context length is 8,192 tokens, but your request has 9000 input tokens")
    TokenCounts(limit=8192, requested=9000)
    >>> parse_token_counts("the model takes at most 4096 tokens"), parse_token_counts("5000 tokens are too many")
    (TokenCounts(limit=4096, requested=None), TokenCounts(limit=None, requested=5000))
    """
    text = _STATUS.sub("", refusal[:_MAX_REFUSAL_CHARS])
    limits, others = list[int](), list[int]()
    for match in _NUMBER.finditer(text):
        is_limit = _LIMIT_BEFORE.search(text[max(0, match.start() - _LOOKBEHIND_CHARS) : match.start()])
        is_limit = is_limit or _LIMIT_AFTER.match(text, match.end())
        (limits if is_limit else others).append(int(re.sub(r"\D", "", match[0])))
    if not limits and len(set(others)) > 1:
        others = sorted(set(others))
        limits = [others[-2]]
    limit = min(limits, default=None)
    requested = max((number for number in (*others, *limits) if limit is None or number > limit), default=None)
    return TokenCounts(limit=limit, requested=requested)


MIN_PAGE_CHARS: Final = 4_000
"""Pages below this length are not shortened, because another part of the request is too long."""
SHORTENED_PAGE_NOTICE: Final = "\n[The page goes on; it was cut here, to fit.]"

_PAGE = re.compile(r"<page (?P<nonce>[0-9a-f]{32})>\n(?P<text>.*)\n</page (?P=nonce)>", re.DOTALL)


def page_chars_allowed(request: LLMRequest, share: float) -> int | None:
    """Return the number of characters of the page that a request may contain.

    None if the request has no page, or if shortening the page cannot help. ``share`` is the fraction of the request
    that the model probably accepts (see ``ContextWindows.record_rejected``).
    """
    if request.purpose != "verify":
        return None
    page_match = _page_of(request)
    if page_match is None:
        return None
    _, page = page_match
    allowed = int(len(page["text"]) - len(page.string) * (1.0 - share))
    return allowed if allowed >= MIN_PAGE_CHARS // 4 else None


def with_shortened_page(request: LLMRequest, page_chars: int) -> LLMRequest:
    """Return the request with the first ``page_chars`` of its page; unchanged if it has no page that can be cut."""
    page_match = _page_of(request)
    if page_match is None:
        return request
    index, page = page_match
    uncut, end = page.string, min(page.start("text") + page_chars, page.end("text"))
    # Keep the nonce of the whole page; it is as unpredictable as a new one.
    text = f"{uncut[:end]}{SHORTENED_PAGE_NOTICE}{uncut[page.end('text') :]}"
    *before, last = request.messages
    content: Any = text
    if index is not None:
        content = list(last["content"])
        content[index] = text if isinstance(content[index], str) else {**content[index], "text": text}
    return replace(request, messages=(*before, {**last, "content": content}))


def _page_of(request: LLMRequest) -> tuple[int | None, re.Match[str]] | None:
    """Return the page in the last message, with the index of its part (None: the message is one string).

    None if the message has no page of at least ``MIN_PAGE_CHARS``.
    """
    content = request.messages[-1]["content"] if request.messages else ()
    parts = [(None, content)] if isinstance(content, str) else enumerate(content)
    for index, part in parts:
        match = _PAGE.search(part if isinstance(part, str) else part.get("text", ""))
        if match is not None and len(match["text"]) >= MIN_PAGE_CHARS:
            return index, match
    return None


log = logging.getLogger(__name__)

_FORM_FAULTS = frozenset({UnusableKind.MALFORMED, UnusableKind.OFF_SCHEMA, UnusableKind.EMPTY})
"""Kinds of unusable replies that indicate that the server ignores the request format."""

OnRetry: TypeAlias = Callable[[LLMUnavailable], None]


class RemoteLLM:
    """``LLMClient`` for one provider.

    ``retrier`` also limits concurrent requests (``limits.llm``). ``budget`` limits the cost of requests that have no
    budget of their own.
    """

    def __init__(
        self,
        backend: ProviderAdapter,
        retrier: Retrier,
        *,
        circuit: CircuitBreaker | None = None,
        budget: RequestBudget | None = None,
        prices: Prices | None = None,
        models: ModelList | None = None,
    ) -> None:
        self.backend = backend
        self.circuit = circuit or CircuitBreaker()
        self._budget = budget
        self._prices = prices or Prices()
        self._models = models or ModelList(backend)
        self._windows = ContextWindows()
        self._retrier = retrier

    @property
    def images(self) -> Images:
        """Return whether requests include screenshots."""
        own: Images = getattr(self.backend, "images", Images.AUTO)
        return own if self.backend.learned_formats is None else self.backend.learned_formats.images

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Send a request; repair an unusable reply once, and shorten a page that is too long.

        Raises:
            LLMUnavailable, LLMRejected, LLMOutputUnusable: with the usage and the unusable replies so far.
        """
        retried: list[LLMUnavailable] = []
        try:
            reply = await self._complete_or_shorten(request, retried.append)
        except LLMError as error:
            error.retried = tuple(map(str, retried))
            raise
        return replace(reply, retried=tuple(map(str, retried)))

    async def _complete_or_shorten(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        try:
            return await self._complete_in_turn(request, on_retry)
        except LLMRejected as error:
            if not error.too_long:
                raise
            page_chars = page_chars_allowed(request, self._windows.record_rejected(request, str(error)))
            if page_chars is None:
                raise
            return await self._complete_shortened(request, page_chars, error, on_retry)

    async def _complete_shortened(
        self, request: LLMRequest, page_chars: int, refusal: LLMRejected, on_retry: OnRetry
    ) -> LLMReply:
        """Send the request with the beginning of the page. Its reply counts only if it supports the claim."""
        log.info("page shortened for the model", extra={"model": request.model, "prompt": request.prompt})
        shorter = ShorterPage(
            refusal=str(refusal),
            page_chars=page_chars,
            unusable=refusal.unusable,
            request_format=format_name(refusal.request_format),
        )
        shortened = with_shortened_page(request, page_chars)
        try:
            reply = await self._complete_in_turn(shortened, on_retry)
        except LLMError as error:
            if isinstance(error, LLMRejected) and error.too_long:
                self._windows.record_rejected(shortened, str(error))
            error.usage, error.shorter_page = refusal.usage + error.usage, shorter
            raise
        usage = refusal.usage + reply.usage
        if getattr(reply.parsed, "result", None) is True:
            return replace(reply, usage=usage, shorter_page=shorter)
        rejection = LLMRejected(
            f"{refusal}; the beginning of the page does not support the claim, and the rest was not sent",
            status=refusal.status,
            usage=usage,
        )
        rejection.reason = Reason.PAGE_NOT_FULLY_SEEN
        rejection.unusable = reply.unusable
        rejection.shorter_page = replace(shorter, text=reply.text, model=reply.model)
        raise rejection from refusal

    async def _complete_in_turn(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        formats = self.backend.learned_formats
        if formats is None:
            return await self._usable_reply(request, on_retry)
        async with formats.exclusive_probe(request.model):
            return await self._usable_reply(request, on_retry)

    async def _usable_reply(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        """Return the first usable reply: to the request, to its repair request, or in another request format.

        Other formats are tried only while the format of the server is not known.
        """
        params = sent_params(request)
        sent, usage, before = request, Usage(), list[UnusableReply]()
        while True:
            try:
                reply = await self._exchange(sent, params, usage, on_retry)
            except LLMError as error:
                error.unusable = (*before, *error.unusable)
                raise
            if isinstance(reply, LLMReply):
                return replace(reply, unusable=tuple(before))
            next_format = self._next_request(request, sent, reply, is_first=not before)
            if next_format is None:
                reply.unusable = (*before, *reply.unusable)
                raise reply
            log.info("llm reply unusable", extra={"kind": reply.kind, "model": request.model, "prompt": request.prompt})
            added = next_format.messages[len(request.messages) :] if not before else ()
            before += [replace(each, then=added) for each in reply.unusable]
            sent, usage = next_format, reply.usage

    def _next_request(
        self, request: LLMRequest, sent: LLMRequest, reply: LLMOutputUnusable, *, is_first: bool
    ) -> LLMRequest | None:
        """Return the request to send after an unusable reply: the repair request, or a more explicit format.

        None: do not send another request.
        """
        repair = repair_request(request, reply.kind) if is_first else sent
        formats, request_format = self.backend.learned_formats, reply.request_format
        if formats is None or request_format is None or request.schema is None:
            return repair if is_first else None
        if reply.kind is UnusableKind.TRUNCATED and request_format.cap is None and is_first:
            formats.set_output_limit(request, DEFAULT_OUTPUT_LIMIT)
            return replace(repair, request_format=replace(request_format, cap=DEFAULT_OUTPUT_LIMIT))
        next_format = formats.next_format(request, request_format) if reply.kind in _FORM_FAULTS else None
        if next_format is None:
            return repair if is_first else None
        return replace(repair, request_format=next_format)

    async def aclose(self) -> None:
        await self._models.aclose()
        await self.backend.aclose()

    async def _exchange(
        self, request: LLMRequest, params: Mapping[str, Any], before: Usage, on_retry: OnRetry
    ) -> LLMReply | LLMOutputUnusable:
        """Send one request with retries. Return the reply, or the error that describes why it is unusable.

        ``before`` is the usage of the earlier requests.
        """

        async def attempt() -> RawReply:
            budget = request.budget or self._budget
            if budget is None:
                return await self._send(request, params)
            estimate = estimate_cost(request.model, request.messages, self._prices)
            await budget.reserve(estimate)
            cost: Usage | None = None  # unknown if the request is cancelled, or if its reply is lost
            model = request.model
            try:
                raw = await self._send(request, params)
                cost, model = usage_of(raw, request.model, self._prices), raw.model or request.model
            except LLMError as error:
                cost = None if isinstance(error, LLMUnavailable) and error.was_sent else error.usage
                raise
            finally:
                budget.settle(estimate, cost, model, role_of(request))
            return raw

        await self.circuit.wait_for_first_request(request.model)
        try:
            is_long = params.get("reasoning_effort") in LONG_EFFORTS
            raw = await self._retrier.run(attempt, on_retry=on_retry, is_long=is_long)
        except LLMError as error:
            error.usage = before + error.usage
            raise
        if not raw.text_only:
            self._windows.record_accepted(request, raw.input_tokens)
        try:
            reply = parsed_reply(raw, request, self._prices)
        except LLMOutputUnusable as error:
            used, error.usage = error.usage, before + error.usage
            error.request_format = None if raw.finish is FinishReason.BROKEN else raw.request_format
            error.unusable = (
                UnusableReply(
                    kind=error.kind,
                    text=raw.text,
                    detail=raw.detail,
                    model=raw.model or request.model,
                    usage=used,
                    request_format=format_name(raw.request_format),
                ),
            )
            return error
        if self.backend.learned_formats is not None and raw.request_format is not None:
            self.backend.learned_formats.record_usable(request, raw.request_format)
        return replace(reply, usage=before + reply.usage)

    async def _send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        async with self.circuit.attempt(request.model):
            try:
                return await self.backend.send(request, params)
            except LLMRejected as error:
                if error.no_such_model:
                    error.args = (
                        missing_model_message(str(error), request.model, await self._models.listed(), self._prices),
                    )
                elif error.scope is RejectionScope.MODEL:
                    error.args = (f"{error} (model {request.model})",)  # a jury has several models
                raise


def sent_params(request: LLMRequest) -> dict[str, Any]:
    """The parameters that are sent: those of the model's family, then the request's own. None stands for no value."""
    params = {**params_for(request.model), **request.params}
    return {name: value for name, value in params.items() if value is not None}


def format_name(request_format: RequestFormat | None) -> str:
    """Return the name of a request format for the call log; empty for the default format (OpenAI's own)."""
    return "" if request_format in (None, RequestFormat()) else str(request_format)


def usage_of(raw: RawReply, model: str, prices: Prices) -> Usage:
    """Return the usage of one reply. If a token count is unknown, it counts 0 and the cost is None."""
    price = prices.of(raw.model) or prices.of(model)
    known = raw.input_tokens is not None and raw.output_tokens is not None
    input_tokens, output_tokens = raw.input_tokens or 0, raw.output_tokens or 0
    usd = None
    if price is not None and known:
        usd = price.usd(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=raw.cached_tokens,
            cache_write_tokens=raw.cache_write_tokens,
        )
    return Usage(calls=1, input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)


def parsed_reply(raw: RawReply, request: LLMRequest, prices: Prices) -> LLMReply:
    """Return the reply with its usage. A verdict must be a boolean; other classes are as strict as they declare.

    Raises:
        LLMOutputUnusable: with the usage and the token counts of the reply.
    """
    usage = usage_of(raw, request.model, prices)
    tokens: dict[str, Any] = {
        "input_tokens": raw.input_tokens or 0,
        "cached_input_tokens": raw.cached_tokens,
        "output_tokens": raw.output_tokens or 0,
        "reasoning_tokens": raw.reasoning_tokens,
    }
    if raw.model:
        tokens["served_model"] = raw.model
    try:
        parsed = read_reply(raw, request.schema, purpose=request.purpose)
    except LLMOutputUnusable as error:
        error.usage, error.tokens = usage, tokens
        raise
    return LLMReply(
        text=raw.text,
        parsed=parsed,
        model=raw.model or request.model,
        usage=usage,
        text_only=raw.text_only,
        request_format=format_name(raw.request_format),
        tokens=tokens,
    )


def repair_request(request: LLMRequest, kind: UnusableKind) -> LLMRequest:
    """Return the repair request: the same request, followed by a message that names the problem.

    It does not contain the unusable reply, because a page may have injected text into it. A request for free text is
    repeated unchanged.
    """
    if request.schema is None:
        return request
    text = load_prompt("repair").render(problem=kind.value.replace("_", " "))
    return replace(request, messages=(*request.messages, {"role": "user", "content": text}))


class DirectLLM:
    """``LLMClient`` that sends each request as it is given: retries after transient faults, and nothing else.

    For task scripts that bring their own model client. There is no cache, no repair request, no circuit breaker, no
    shortened page and no parameter of a model family, so that a script gets exactly the reply to what it sends.
    ``before_attempt`` is called before each attempt and may raise. Delays are between half and one and a half times
    those of ``policy``.
    """

    def __init__(self, backend: ProviderAdapter, policy: RetryPolicy, before_attempt: Callable[[], None]) -> None:
        self._backend = backend
        self._retrier = Retrier(policy, nullcontext(), jitter=_half_jitter)
        self._before_attempt = before_attempt

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Send a request.

        Raises:
            LLMUnavailable, LLMRejected, LLMOutputUnusable: there is no usable reply.
            ReplyNotCached: the request asks for a cached reply, and there is no cache.
        """
        if request.cache_only:
            raise ReplyNotCached

        async def attempt() -> RawReply:
            self._before_attempt()
            return await self._backend.send(request, request.params)

        raw = await self._retrier.run(attempt)
        reply = parsed_reply(raw, request, Prices())
        if raw.finish is FinishReason.LENGTH:
            error = LLMOutputUnusable(UnusableKind.TRUNCATED, "the reply is truncated")
            error.usage, error.tokens = reply.usage, dict(reply.tokens)
            raise error
        return reply

    async def aclose(self) -> None:
        await self._backend.aclose()


def _half_jitter(planned_s: float) -> float:
    return planned_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients, no secret
