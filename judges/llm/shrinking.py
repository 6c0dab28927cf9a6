"""Shortening of a request whose page is too long for the model. Pure.

The beginning of a page can support a claim, but it cannot refute it, because the evidence may be in the rest.

Cached replies and call logs store only the number of remaining characters. Therefore change the way a page is cut, or
``TRUNCATION_NOTICE``, only together with ``encoding.KEY_VERSION``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from judges.llm.client import LLMRequest

MIN_PAGE_CHARS: Final = 4_000
"""Pages below this length are not shortened, because another part of the request is too long."""
TRUNCATION_NOTICE: Final = "\n[The page goes on; it was cut here, to fit.]"

_PAGE = re.compile(r"<page (?P<nonce>[0-9a-f]{32})>\n(?P<text>.*)\n</page (?P=nonce)>", re.DOTALL)


def page_chars_allowed(request: LLMRequest, share: float) -> int | None:
    """Return the number of characters of the page that a request may contain.

    None if the request has no page, or if shortening the page cannot help. ``share`` is the fraction of the request
    that the model probably accepts (``context_windows``).
    """
    if request.purpose != "verify":
        return None
    found = _page_of(request)
    if found is None:
        return None
    _, page = found
    kept = int(len(page["text"]) - len(page.string) * (1.0 - share))
    return kept if kept >= MIN_PAGE_CHARS // 4 else None


def with_shortened_page(request: LLMRequest, page_chars: int) -> LLMRequest:
    """Return the request with the first ``page_chars`` of its page; unchanged if it has no page that can be cut."""
    found = _page_of(request)
    if found is None:
        return request
    place, page = found
    whole, end = page.string, min(page.start("text") + page_chars, page.end("text"))
    # The tags keep the nonce of the whole page, which is unpredictable, too.
    text = f"{whole[:end]}{TRUNCATION_NOTICE}{whole[page.end('text') :]}"
    *before, last = request.messages
    content: Any = text
    if place is not None:
        content = list(last["content"])
        content[place] = text if isinstance(content[place], str) else {**content[place], "text": text}
    return replace(request, messages=(*before, {**last, "content": content}))


def _page_of(request: LLMRequest) -> tuple[int | None, re.Match[str]] | None:
    """Return the page in the last message, with the index of its part (None: the message is one string).

    None if the message has no page of at least ``MIN_PAGE_CHARS``.
    """
    content = request.messages[-1]["content"] if request.messages else ()
    parts = [(None, content)] if isinstance(content, str) else enumerate(content)
    for place, part in parts:
        found = _PAGE.search(part if isinstance(part, str) else part.get("text", ""))
        if found is not None and len(found["text"]) >= MIN_PAGE_CHARS:
            return place, found
    return None
