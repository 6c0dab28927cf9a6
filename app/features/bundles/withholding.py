"""What ``--no-content`` leaves of texts that belong to others: their hashes, addresses and short quotes.

Bodies of pages are not put into such a bundle at all. What is done here is for the places where they come up again: in
requests, in replies and in results.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

MAX_QUOTE_CHARS: Final = 300
OURS: Final = frozenset({"task", "answer", "instruction", "claim", "request", "url"})
"""Blocks of a prompt that hold no page."""

_BLOCK = re.compile(r"<([a-z_]+) ([0-9a-f]{32})>\n(.*?)\n</\1 \2>", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+")
_OWN_WORDS = frozenset(
    {"reasoning", "desc", "claim", "instruction", "answer_name", "agent_name", "id", "url", "task_id"}
)


def without_pages(text: str, *, own_prompt: bool) -> str:
    """A request's text with every page in it replaced by its hash.

    What a judge script has written itself (not ``own_prompt``) may be a page from end to end, and goes as a whole
    where it is longer than a quote.
    """
    if not own_prompt:
        return text if len(text) <= MAX_QUOTE_CHARS else _named(text)

    def kept(block: re.Match[str]) -> str:
        label, nonce, inside = block.groups()
        if label in OURS:
            return block[0]
        return f"<{label} {nonce}>\n{_named(inside)}\n</{label} {nonce}>"

    return _BLOCK.sub(kept, text)


def short_reply(text: str) -> str:
    """A reply in which nothing that may come from a page is longer than a quote."""
    try:
        said = json.loads(text)
    except ValueError:
        return shortened(text)
    return json.dumps(short_values(said), ensure_ascii=False)


def short_values(value: Any) -> Any:
    """JSON values in which every text but those of judges and answers is at most as long as a quote."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, Mapping):
        return {name: each if name in _OWN_WORDS else short_values(each) for name, each in value.items()}
    if isinstance(value, list):
        return [short_values(each) for each in value]
    return value


def shortened(text: str) -> str:
    """A text as long as a quote may be; an address stays what it is."""
    return text if len(text) <= MAX_QUOTE_CHARS or _ADDRESS.fullmatch(text) else text[:MAX_QUOTE_CHARS]


def _named(text: str) -> str:
    sha256 = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"[{len(text)} characters left out, sha256 {sha256}]"
