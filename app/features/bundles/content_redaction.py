"""Redaction of page content for ``--no-content``: hashes, URLs and short quotes remain.

Bodies of pages are never written to such a bundle. This module handles copies of page text in requests, replies and
results.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from judges.llm.call_log_reader import join_pieces

MAX_QUOTE_CHARS: Final = 300
LABELS_WITHOUT_PAGE_TEXT: Final = frozenset({"task", "answer", "instruction", "claim", "request", "url"})
"""Labels of prompt blocks that contain no page text."""

_BLOCK = re.compile(r"<([a-z_]+) ([0-9a-f]{32})>\n(.*?)\n</\1 \2>", re.DOTALL)
_URL = re.compile(r"https?://\S+")
_UNREDACTED_FIELDS = frozenset(
    {"reasoning", "desc", "claim", "instruction", "answer_name", "agent_name", "id", "url", "task_id"}
)


def redact_call(call: dict[str, Any], text_of: Callable[[str], str]) -> dict[str, Any]:
    """Return a recorded model call without page text. ``text_of`` returns the text for a hash."""
    own_prompt = call["prompt"] is not None
    call = _redact_exchange(call, text_of, own_prompt=own_prompt)
    if "shortened" in call:
        call["shortened"] = _redact_exchange(call["shortened"], text_of, own_prompt=own_prompt)
    return call


def _redact_exchange(exchange: dict[str, Any], text_of: Callable[[str], str], *, own_prompt: bool) -> dict[str, Any]:
    """Return a request and its replies with page text removed."""
    changed = {"messages": _redact_value(exchange["messages"], text_of, own_prompt=own_prompt)}
    if "reply" in exchange:
        changed["reply"] = truncate_reply(exchange["reply"])
    if "unusable" in exchange:
        changed["unusable"] = [
            {**each, "reply": truncate_reply(each["reply"]), "detail": truncate_text(each["detail"])}
            for each in exchange["unusable"]
        ]
    return {**exchange, **changed}


def _redact_value(value: Any, text_of: Callable[[str], str], *, own_prompt: bool) -> Any:
    if isinstance(value, str):
        return redact_prompt(value, own_prompt=own_prompt)
    if isinstance(value, dict):
        if "pieces" in value:
            return redact_prompt(join_pieces(value, text_of), own_prompt=own_prompt)
        return {name: _redact_value(each, text_of, own_prompt=own_prompt) for name, each in value.items()}
    if isinstance(value, list):
        return [_redact_value(each, text_of, own_prompt=own_prompt) for each in value]
    return value


def redact_prompt(text: str, *, own_prompt: bool) -> str:
    """Replace every page in the text of a request by its hash.

    Text that a judge script wrote (``own_prompt=False``) may consist of page text. It is replaced completely if it is
    longer than a quote.
    """
    if not own_prompt:
        return text if len(text) <= MAX_QUOTE_CHARS else _hash_placeholder(text)

    def replaced(block: re.Match[str]) -> str:
        label, nonce, content = block.groups()
        if label in LABELS_WITHOUT_PAGE_TEXT:
            return block[0]
        return f"<{label} {nonce}>\n{_hash_placeholder(content)}\n</{label} {nonce}>"

    return _BLOCK.sub(replaced, text)


def truncate_reply(text: str) -> str:
    """Truncate texts of a reply that may come from a page to the length of a quote."""
    try:
        reply = json.loads(text)
    except ValueError:
        return truncate_text(text)
    return json.dumps(truncate_values(reply), ensure_ascii=False)


def truncate_values(value: Any) -> Any:
    """Truncate texts in JSON values to the length of a quote, except texts of judges and answers."""
    if isinstance(value, str):
        return truncate_text(value)
    if isinstance(value, Mapping):
        return {name: each if name in _UNREDACTED_FIELDS else truncate_values(each) for name, each in value.items()}
    if isinstance(value, list):
        return [truncate_values(each) for each in value]
    return value


def truncate_text(text: str) -> str:
    """Truncate a text to the maximum length of a quote. URLs are never truncated."""
    return text if len(text) <= MAX_QUOTE_CHARS or _URL.fullmatch(text) else text[:MAX_QUOTE_CHARS]


def _hash_placeholder(text: str) -> str:
    sha256 = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"[{len(text)} characters left out, sha256 {sha256}]"
