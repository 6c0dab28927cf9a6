"""Parameters by model family: a table, because no rule over names holds.

A model without a family is sent no parameters: the provider's defaults are always valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DEFAULT_MODEL: Final = "gpt-6-luna"
"""The bare name of the model that judges by default."""
DEFAULT_EFFORT: Final = "max"
"""The reasoning effort of the default model. No other model is sent an effort unless the user sets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models whose bare, lower-case name matches ``pattern`` from its start, and the parameters sent to them.

    ``reasons``: the model writes reasoning tokens before its reply, which count as output.
    """

    name: str
    pattern: str
    params: Mapping[str, Any] = field(default_factory=dict)
    reasons: bool = False


_STEADY: Mapping[str, Any] = {"temperature": 0.0}
_CLAUDE = r"(\w+\.)*(anthropic\.)?claude"

FAMILIES: tuple[Family, ...] = (
    Family(
        name="openai-default",
        pattern=re.escape(DEFAULT_MODEL) + r"(-\d|$)",
        params={"reasoning_effort": DEFAULT_EFFORT},
        reasons=True,
    ),
    Family(name="openai-reasoning", pattern=r"o[1-9](-|$)", reasons=True),
    Family(name="openai-gpt-5-chat", pattern=r"gpt-5(\.\d+)?-chat", params=_STEADY),
    Family(name="openai-gpt-5", pattern=r"gpt-[5-9]|gpt-oss", reasons=True),
    Family(name="openai-search", pattern=r"gpt-4o(-mini)?-search"),
    Family(name="openai-chat", pattern=r"gpt-4|gpt-3\.5|chatgpt", params=_STEADY),
    Family(name="claude-4", pattern=_CLAUDE + r"-([123]|\w+-4(-[0-6])?(-\d{8}|-v\d|@|$))", params=_STEADY),
    Family(name="claude", pattern=_CLAUDE, reasons=True),
    Family(name="gemini-2", pattern=r"gemini-[12]|gemma", params=_STEADY),
    Family(name="gemini", pattern=r"gemini", reasons=True),
    Family(name="llama", pattern=r"(meta-)?llama|codellama", params=_STEADY),
    Family(name="qwen-reasoning", pattern=r"qwq|qwen3.*thinking", reasons=True),
    Family(name="qwen", pattern=r"qwen", params=_STEADY),
    Family(name="mistral-reasoning", pattern=r"magistral", reasons=True),
    Family(name="mistral", pattern=r"(open-)?mi[sx]tral|ministral|pixtral", params=_STEADY),
    Family(name="deepseek-reasoning", pattern=r"deepseek-(r1|reasoner)", reasons=True),
    Family(name="deepseek", pattern=r"deepseek", params=_STEADY),
)
"""In the order in which they are tried: the first match counts."""


def family_of(model: str) -> Family | None:
    """The family of a model; a vendor in front of its name (``meta-llama/Llama-3``) is ignored.

    >>> [family.name if family else None for family in map(family_of, ("o3", "gpt-4o", "my-model"))]
    ['openai-reasoning', 'openai-chat', None]
    """
    bare = model.rsplit("/", 1)[-1].lower()
    return next((family for family in FAMILIES if re.match(family.pattern, bare)), None)


def params_for(model: str) -> Mapping[str, Any]:
    """The parameters to send with every request to ``model``; none for a model of no known family."""
    family = family_of(model)
    return {} if family is None else family.params


def reasons(model: str) -> bool:
    """Whether ``model`` is known to write reasoning tokens before its reply."""
    family = family_of(model)
    return family is not None and family.reasons
