"""A model behind a network, made fit for judges: retried, repaired once, counted and priced.

Everything a provider's adapter does not do. One ``complete`` is at most two usable exchanges: the request, and
one repair try when the reply cannot be used; and the same again with less of the page, if the request was refused for
its length.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeAlias

from judges.errors import (
    LLMError,
    LLMOutputUnusable,
    LLMRejected,
    LLMUnavailable,
    ShorterPage,
    UnusableKind,
    UnusableReply,
)
from judges.llm.budget import Purse, estimate_cost
from judges.llm.circuit import Circuit
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.context_windows import ContextWindows
from judges.llm.dialects import OUTPUT_CAP, Dialect
from judges.llm.families import params_for
from judges.llm.missing_models import ModelList, describe_missing
from judges.llm.negotiation import Dialects, Images
from judges.llm.parameters import LONG_EFFORTS
from judges.llm.pricing import Prices
from judges.llm.replies import read_reply
from judges.llm.retry import Retrier, RetryPolicy
from judges.llm.roles import role_of
from judges.llm.shrinking import page_chars_allowed, with_page_of
from judges.llm.wire import Backend, Finish, RawReply
from judges.prompting.prompts.library import load_prompt
from rubrics.verdict import Usage

log = logging.getLogger(__name__)

_FORM_FAULTS = frozenset({UnusableKind.MALFORMED, UnusableKind.OFF_SCHEMA, UnusableKind.EMPTY})
"""What a server's replies look like if it ignores the form in which it was asked."""

OnRetry: TypeAlias = Callable[[LLMUnavailable], None]


class RemoteLLM:
    """An ``LLMClient`` over one provider. ``semaphore`` bounds the requests under way (``limits.llm``), ``budget``
    what they may cost where a request brings no purse of its own.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        semaphore: AbstractAsyncContextManager[Any],
        circuit: Circuit | None = None,
        budget: Purse | None = None,
        prices: Prices | None = None,
        models: ModelList | None = None,
        policy: RetryPolicy | None = None,
        retrier: Retrier | None = None,
    ) -> None:
        self._backend = backend
        self.circuit = circuit or Circuit()
        self._budget = budget
        self._prices = prices or Prices()
        self._models = models or ModelList(backend)
        self._windows = ContextWindows()
        self._retrier = retrier or Retrier(policy or RetryPolicy(), semaphore)

    @property
    def provider(self) -> str:
        return self._backend.provider

    @property
    def endpoint(self) -> str:
        return self._backend.endpoint

    @property
    def images(self) -> Images:
        """Whether models are shown pictures."""
        own: Images = getattr(self._backend, "images", Images.AUTO)
        return own if self.dialects is None else self.dialects.images

    @property
    def dialects(self) -> Dialects | None:
        """How the server wants to be asked; None: in one way."""
        return self._backend.dialects

    async def complete(self, request: LLMRequest) -> LLMReply:
        """Ask, and ask once more if the reply cannot be used, or with less of the page if that was too long.

        Raises:
            LLMUnavailable, LLMRejected, LLMOutputUnusable: each with the usage, and what was said, up to then.
        """
        retried: list[LLMUnavailable] = []
        try:
            reply = await self._answered(request, retried.append)
        except LLMError as error:
            error.retried = tuple(map(str, retried))
            raise
        return replace(reply, retried=tuple(map(str, retried)))

    async def _answered(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        try:
            return await self._asked(request, on_retry)
        except LLMRejected as error:
            if not error.too_long:
                raise
            page_chars = page_chars_allowed(request, self._windows.refused(request, str(error)))
            if page_chars is None:
                raise
            return await self._asked_with_less(request, page_chars, error, on_retry)

    async def _asked_with_less(
        self, request: LLMRequest, page_chars: int, refusal: LLMRejected, on_retry: OnRetry
    ) -> LLMReply:
        """Ask with the beginning of the page, which counts only if it supports the claim."""
        log.info("page shortened for the model", extra={"model": request.model, "prompt": request.prompt})
        shorter = ShorterPage(
            refusal=str(refusal), page_chars=page_chars, unusable=refusal.unusable, form=form_name(refusal.form)
        )
        with_less = with_page_of(request, page_chars)
        try:
            reply = await self._asked(with_less, on_retry)
        except LLMError as error:
            if isinstance(error, LLMRejected) and error.too_long:
                self._windows.refused(with_less, str(error))
            error.usage, error.shorter_page = refusal.usage + error.usage, shorter
            raise
        usage = refusal.usage + reply.usage
        if getattr(reply.parsed, "result", None) is True:
            return replace(reply, usage=usage, shorter_page=shorter)
        unseen = LLMRejected(
            f"{refusal}; the part of the page that it takes does not support the claim, and the rest was not seen",
            status=refusal.status,
            usage=usage,
        )
        unseen.unusable = reply.unusable
        unseen.shorter_page = replace(shorter, text=reply.text, model=reply.model)
        raise unseen from refusal

    async def _asked(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        dialects = self._backend.dialects
        if dialects is None:
            return await self._usable(request, on_retry)
        async with dialects.turn(request.model):
            return await self._usable(request, on_retry)

    async def _usable(self, request: LLMRequest, on_retry: OnRetry) -> LLMReply:
        """A reply that can be used: the first, or one to the same request with a last word on what was wrong.

        A server of which little is known is asked in further forms.
        """
        params = sent_params(request)
        asked, usage, before = request, Usage(), list[UnusableReply]()
        while True:
            try:
                reply = await self._exchange(asked, params, usage, on_retry)
            except LLMError as error:
                error.unusable = (*before, *error.unusable)
                raise
            if isinstance(reply, LLMReply):
                return replace(reply, unusable=tuple(before))
            following = self._asked_again(request, asked, reply, is_first=not before)
            if following is None:
                reply.unusable = (*before, *reply.unusable)
                raise reply
            log.info("llm reply unusable", extra={"kind": reply.kind, "model": request.model, "prompt": request.prompt})
            added = following.messages[len(request.messages) :] if not before else ()
            before += [replace(each, then=added) for each in reply.unusable]
            asked, usage = following, reply.usage

    def _asked_again(
        self, request: LLMRequest, asked: LLMRequest, reply: LLMOutputUnusable, *, is_first: bool
    ) -> LLMRequest | None:
        """The request to send after an unusable reply: with the repair, and in a form that says more. None: no more."""
        again = repaired(request, reply.kind) if is_first else asked
        dialects, form = self._backend.dialects, reply.form
        if dialects is None or form is None or request.schema is None:
            return again if is_first else None
        if reply.kind is UnusableKind.TRUNCATED and form.cap is None and is_first:
            dialects.capped(request, form, OUTPUT_CAP)
            return replace(again, form=replace(form, cap=OUTPUT_CAP))
        following = dialects.next_form(request, form) if reply.kind in _FORM_FAULTS else None
        if following is None:
            return again if is_first else None
        return replace(again, form=following)

    async def aclose(self) -> None:
        await self._models.aclose()
        await self._backend.aclose()

    async def _exchange(
        self, request: LLMRequest, params: Mapping[str, Any], before: Usage, on_retry: OnRetry
    ) -> LLMReply | LLMOutputUnusable:
        """One usable reply, or in which way it is not; ``before`` is what was used up to now."""

        async def attempt() -> RawReply:
            purse = request.purse or self._budget
            if purse is None:
                return await self._send(request, params)
            estimate = estimate_cost(request.model, request.messages, self._prices)
            await purse.reserve(estimate)
            cost, model = Usage(), request.model
            try:
                raw = await self._send(request, params)
                cost, model = usage_of(raw, request.model, self._prices), raw.model or request.model
            except LLMError as error:
                cost = error.usage
                raise
            finally:
                purse.settle(estimate, cost, model, role_of(request))
            return raw

        await self.circuit.ready(request.model)
        try:
            is_long = params.get("reasoning_effort") in LONG_EFFORTS
            raw = await self._retrier.run(attempt, on_retry=on_retry, is_long=is_long)
        except LLMError as error:
            error.usage = before + error.usage
            raise
        used, model = usage_of(raw, request.model, self._prices), raw.model or request.model
        if not raw.text_only:
            self._windows.accepted(request, raw.input_tokens)
        try:
            # A verdict must be a boolean; what scripts extract may be as lax as their classes.
            parsed = read_reply(raw, request.schema, strict=request.purpose == "verify")
        except LLMOutputUnusable as error:
            error.usage, error.form = before + used, None if raw.finish is Finish.BROKEN else raw.form
            error.unusable = (
                UnusableReply(
                    kind=error.kind,
                    text=raw.text,
                    detail=raw.detail,
                    model=model,
                    usage=used,
                    form=form_name(raw.form),
                ),
            )
            return error
        if self._backend.dialects is not None and raw.form is not None:
            self._backend.dialects.usable(request, raw.form)
        return LLMReply(
            text=raw.text,
            parsed=parsed,
            model=model,
            usage=before + used,
            text_only=raw.text_only,
            form=form_name(raw.form),
        )

    async def _send(self, request: LLMRequest, params: Mapping[str, Any]) -> RawReply:
        async with self.circuit.attempt(request.model):
            try:
                return await self._backend.send(request, params)
            except LLMRejected as error:
                if error.no_such_model:
                    error.args = (
                        describe_missing(str(error), request.model, await self._models.listed(), self._prices),
                    )
                raise


def sent_params(request: LLMRequest) -> dict[str, Any]:
    """The parameters that are sent: those of the model's family, then the request's own. None stands for no value."""
    params = {**params_for(request.model), **request.params}
    return {name: value for name, value in params.items() if value is not None}


def form_name(form: Dialect | None) -> str:
    """How a request was sent, as records have it; empty for the form that OpenAI's own models take."""
    return "" if form in (None, Dialect()) else str(form)


def usage_of(raw: RawReply, model: str, prices: Prices) -> Usage:
    """What one reply cost. Unknown token counts count 0 and have no price."""
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


def repaired(request: LLMRequest, kind: UnusableKind) -> LLMRequest:
    """The same request with a last word on what was wrong. The unusable reply itself is not repeated to the model:
    it may carry whatever a page told it to write. Free text has no form to be reminded of: it is asked again as it was.
    """
    if request.schema is None:
        return request
    text = load_prompt("repair").render(problem=kind.value.replace("_", " "))
    return replace(request, messages=(*request.messages, {"role": "user", "content": text}))
