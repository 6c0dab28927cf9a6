"""A claim whose page is too long for the model, put once more with the beginning of the page only. Pure.

What is left of a page can support a claim. That it does not says nothing: the evidence may stand in the rest.
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
_COUNT = re.compile(r"(?P<told>\d[\d,]{2,}) tokens|> (?P<allowed>\d[\d,]{2,})")
_SAFETY = 0.85
_UNTOLD = 0.5


def shortened(request: LLMRequest, refusal: str) -> LLMRequest | None:
    """The request with a shorter page; None where it shows no page, or where that cannot be what is too long.

    ``refusal`` are the provider's words, which often say how much is allowed and how much it was.
    """
    if request.purpose != "verify" or not request.messages:
        return None
    *before, last = request.messages
    parts = [last["content"]] if isinstance(last["content"], str) else list(last["content"])
    for place, part in enumerate(parts):
        text = _with_less(part if isinstance(part, str) else part.get("text", ""), refusal)
        if text is not None:
            parts[place] = text if isinstance(part, str) else {**part, "text": text}
            content: Any = parts[0] if isinstance(last["content"], str) else parts
            return replace(request, messages=(*before, {**last, "content": content}))
    return None


def _with_less(text: str, refusal: str) -> str | None:
    found = _PAGE.search(text)
    if found is None or len(found["text"]) < MIN_PAGE_CHARS:
        return None
    too_much = len(text) * (1.0 - _allowed_share(refusal))
    kept = int(len(found["text"]) - too_much)
    if kept < MIN_PAGE_CHARS // 4:
        return None
    # The tags stay: their nonce is that of the whole text, which nobody can foresee either.
    return f"{text[: found.start('text') + kept]}{CUT_MARK}{text[found.end('text') :]}"


def _allowed_share(refusal: str) -> float:
    """How much of the request may stay, from the two counts in the provider's words, else half of it."""
    told = (found["told"] or found["allowed"] for found in _COUNT.finditer(refusal))
    counts = sorted({int(number.replace(",", "")) for number in told})
    if len(counts) < 2:
        return _UNTOLD
    return _SAFETY * counts[-2] / counts[-1]
