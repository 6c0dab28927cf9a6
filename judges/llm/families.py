"""Which parameters a model takes, by its family: a table, because no rule over names holds.

Reasoning models refuse a temperature, others give steadier verdicts at 0, and of a model nobody has
listed we send none: the provider's default is always valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models whose bare, lower-case name matches ``pattern`` from its start, and what is sent to them."""

    name: str
    pattern: str
    params: Mapping[str, Any] = field(default_factory=dict)


_STEADY: Mapping[str, Any] = {"temperature": 0.0}

FAMILIES: tuple[Family, ...] = (
    Family(name="openai-reasoning", pattern=r"o[1-9](-|$)"),
    Family(name="openai-gpt-5-chat", pattern=r"gpt-5(\.\d+)?-chat", params=_STEADY),
    Family(name="openai-gpt-5", pattern=r"gpt-5|gpt-oss"),
    Family(name="openai-search", pattern=r"gpt-4o(-mini)?-search"),
    Family(name="openai-chat", pattern=r"gpt-4|gpt-3\.5|chatgpt", params=_STEADY),
    Family(name="claude", pattern=r"(\w+\.)*(anthropic\.)?claude", params=_STEADY),
    Family(name="gemini", pattern=r"gemini|gemma", params=_STEADY),
    Family(name="llama", pattern=r"(meta-)?llama|codellama", params=_STEADY),
    Family(name="qwen-reasoning", pattern=r"qwq|qwen3.*thinking"),
    Family(name="qwen", pattern=r"qwen", params=_STEADY),
    Family(name="mistral-reasoning", pattern=r"magistral"),
    Family(name="mistral", pattern=r"(open-)?mi[sx]tral|ministral|pixtral", params=_STEADY),
    Family(name="deepseek-reasoning", pattern=r"deepseek-(r1|reasoner)"),
    Family(name="deepseek", pattern=r"deepseek", params=_STEADY),
)
"""In the order in which they are tried: the first match counts."""


def family_of(model: str) -> Family | None:
    """The family of a model; a vendor in front of its name (``meta-llama/Llama-3``) is passed over.

    >>> [family.name if family else None for family in map(family_of, ("o4-mini", "gpt-4o", "my-model"))]
    ['openai-reasoning', 'openai-chat', None]
    """
    bare = model.rsplit("/", 1)[-1].lower()
    return next((family for family in FAMILIES if re.match(family.pattern, bare)), None)


def params_for(model: str) -> Mapping[str, Any]:
    """The parameters to send with every request to ``model``; none for a model of no known family."""
    family = family_of(model)
    return {} if family is None else family.params
