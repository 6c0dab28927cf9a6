"""Context windows of models, learned from errors and replies. In memory, for one server.

An error for a request that is too long may name the limit, the size of the request, both or neither. Missing counts
come from earlier errors and replies of the model, and from an estimate of the request's tokens.

A shortened page can support a claim but cannot refute it, because the evidence may be in the omitted part. The reply
therefore counts only if it supports the claim.

Cached replies and call logs store only the number of characters that were kept. If you change how a page is shortened,
or ``SHORTENED_PAGE_NOTICE``, also change ``encoding.KEY_VERSION``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from judges.llm.budget import estimate_tokens
from judges.llm.client import LLMRequest

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
        if input_tokens and size and not _has_images(request.messages):
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


def _has_images(messages: Sequence[Mapping[str, Any]]) -> bool:
    contents = (message.get("content") or () for message in messages)
    return any("image_url" in part for content in contents if not isinstance(content, str) for part in content)


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
