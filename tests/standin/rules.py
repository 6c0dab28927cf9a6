"""Decision rules of the stand-in model: deterministic functions of the call."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.standin.call import Call


def keyword_rule(words: Mapping[str, bool], *, default: bool = True) -> Callable[[Call], bool]:
    """Return a rule: the verdict of the first of ``words`` in the claim (case-insensitive), else ``default``."""

    def decide(call: Call) -> bool:
        claim = call.claim.lower()
        return next((verdict for word, verdict in words.items() if word.lower() in claim), default)

    return decide


def seeded_rule(seed: int, pass_rate: float = 0.8) -> Callable[[Call], bool]:
    """Return a rule that passes the fraction ``pass_rate`` of claims; a claim always has the same verdict for one
    seed.
    """

    return lambda call: is_sampled(call.claim, seed=seed, rate=pass_rate)


def is_sampled(text: str, *, seed: int, rate: float) -> bool:
    """Return whether a text is in a fixed sample that contains the fraction ``rate`` of all texts."""
    digest = hashlib.sha256(f"{seed}\0{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < rate


def first_sentence_quotes(call: Call) -> list[str]:
    """Return the first passage of the page that is long enough for a quote; none without a page."""
    found = re.search(r"[^\n.]{12,200}", call.page)
    return [found[0].strip()] if found else []


def no_quotes(_: Call) -> list[str]:
    return []


def minimal_instance(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return a minimal value for a JSON schema: null where allowed, else an empty value of the right type."""
    root = root or schema
    if "$ref" in schema:
        return minimal_instance(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        options = schema["anyOf"]
        return None if any(o.get("type") == "null" for o in options) else minimal_instance(options[0], root)
    kind = schema.get("type")
    if kind == "object":
        return {name: minimal_instance(each, root) for name, each in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(str(kind))
