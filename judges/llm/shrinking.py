"""A claim whose page is too long for the model, put once more with the beginning of the page only. Pure.

What is left of a page can support a claim. That it does not says nothing: the evidence may stand in the rest.

What was sent is known by the request and by how much of its page was left: kept replies and records hold no more. So
how a page is cut, and the mark, may change only together with ``encoding.KEY_VERSION``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from judges.llm.client import LLMRequest

MIN_PAGE_CHARS: Final = 4_000
"""Of a page this short nothing is taken away: something else is too long then."""
CUT_MARK: Final = "\n[The page goes on; it was cut here, to fit.]"

_PAGE = re.compile(r"<page (?P<nonce>[0-9a-f]{32})>\n(?P<text>.*)\n</page (?P=nonce)>", re.DOTALL)


def page_chars_allowed(request: LLMRequest, share: float) -> int | None:
    """How much of its page a request may show; None where it shows none, or where that cannot be what is too long.

    ``share`` of the request is what the model probably takes (``context_windows``).
    """
    if request.purpose != "verify":
        return None
    found = _page_of(request)
    if found is None:
        return None
    _, page = found
    kept = int(len(page["text"]) - len(page.string) * (1.0 - share))
    return kept if kept >= MIN_PAGE_CHARS // 4 else None


def with_page_of(request: LLMRequest, page_chars: int) -> LLMRequest:
    """The request with the first ``page_chars`` of its page; as it is where it shows none that can be cut."""
    found = _page_of(request)
    if found is None:
        return request
    place, page = found
    whole, end = page.string, min(page.start("text") + page_chars, page.end("text"))
    # The tags stay: their nonce is that of the whole text, which nobody can foresee either.
    text = f"{whole[:end]}{CUT_MARK}{whole[page.end('text') :]}"
    *before, last = request.messages
    content: Any = text
    if place is not None:
        content = list(last["content"])
        content[place] = text if isinstance(content[place], str) else {**content[place], "text": text}
    return replace(request, messages=(*before, {**last, "content": content}))


def _page_of(request: LLMRequest) -> tuple[int | None, re.Match[str]] | None:
    """The page in the last message that is long enough, and the place of its part; None: the message is one text."""
    content = request.messages[-1]["content"] if request.messages else ()
    parts = [(None, content)] if isinstance(content, str) else enumerate(content)
    for place, part in parts:
        found = _PAGE.search(part if isinstance(part, str) else part.get("text", ""))
        if found is not None and len(found["text"]) >= MIN_PAGE_CHARS:
            return place, found
    return None
