"""Table of model families and the parameters that each accepts.

Requests to a model without a family contain no parameters, because the provider's defaults are always valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

DEFAULT_MODEL: Final = "gpt-6-luna"
"""Default judge model, without its provider."""
DEFAULT_EFFORT: Final = "max"
"""Reasoning effort of the default model. Other models get an effort only if the user sets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models whose name matches ``pattern`` from its start, and their parameters.

    The name is compared in lower case, without provider and vendor. ``is_reasoning``: the model generates
    reasoning tokens before its reply, which count as output.
    """

    name: str
    pattern: str
    params: Mapping[str, Any] = field(default_factory=dict)
    is_reasoning: bool = False


_DETERMINISTIC: Mapping[str, Any] = {"temperature": 0.0}
_CLAUDE = r"(\w+\.)*(anthropic\.)?claude"

FAMILIES: tuple[Family, ...] = (
    Family(
        name="openai-default",
        pattern=re.escape(DEFAULT_MODEL) + r"(-\d|$)",
        params={"reasoning_effort": DEFAULT_EFFORT},
        is_reasoning=True,
    ),
    Family(name="openai-reasoning", pattern=r"o[1-9](-|$)", is_reasoning=True),
    Family(name="openai-gpt-5-chat", pattern=r"gpt-5(\.\d+)?-chat", params=_DETERMINISTIC),
    Family(name="openai-gpt-5", pattern=r"gpt-[5-9]|gpt-oss", is_reasoning=True),
    Family(name="openai-search", pattern=r"gpt-4o(-mini)?-search"),
    Family(name="openai-chat", pattern=r"gpt-4|gpt-3\.5|chatgpt", params=_DETERMINISTIC),
    Family(name="claude-4", pattern=_CLAUDE + r"-([123]|\w+-4(-[0-6])?(-\d{8}|-v\d|@|$))", params=_DETERMINISTIC),
    Family(name="claude", pattern=_CLAUDE, is_reasoning=True),
    Family(name="gemini-2", pattern=r"gemini-[12]|gemma", params=_DETERMINISTIC),
    Family(name="gemini", pattern=r"gemini", is_reasoning=True),
    Family(name="llama", pattern=r"(meta-)?llama|codellama", params=_DETERMINISTIC),
    Family(name="qwen-reasoning", pattern=r"qwq|qwen3.*thinking", is_reasoning=True),
    Family(name="qwen", pattern=r"qwen", params=_DETERMINISTIC),
    Family(name="mistral-reasoning", pattern=r"magistral", is_reasoning=True),
    Family(name="mistral", pattern=r"(open-)?mi[sx]tral|ministral|pixtral", params=_DETERMINISTIC),
    Family(name="deepseek-reasoning", pattern=r"deepseek-(r1|reasoner)", is_reasoning=True),
    Family(name="deepseek", pattern=r"deepseek", params=_DETERMINISTIC),
)
"""The first matching row applies."""


@lru_cache(maxsize=256)
def family_of(model: str) -> Family | None:
    """Return the family of a model, or None. A vendor before the name (``meta-llama/Llama-3``) is ignored.

    >>> [family.name if family else None for family in map(family_of, ("o3", "gpt-4o", "my-model"))]
    ['openai-reasoning', 'openai-chat', None]
    """
    model_name = model.rsplit("/", 1)[-1].lower()
    return next((family for family in FAMILIES if re.match(family.pattern, model_name)), None)


def params_for(model: str) -> Mapping[str, Any]:
    """Return the parameters to send with every request to ``model``; empty if its family is unknown."""
    family = family_of(model)
    return {} if family is None else family.params


def is_reasoning_model(model: str) -> bool:
    """Return whether ``model`` is known to generate reasoning tokens before its reply."""
    family = family_of(model)
    return family is not None and family.is_reasoning
