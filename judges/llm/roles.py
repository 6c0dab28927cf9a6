"""What a request is for, in one word: that by which the money is told apart."""

from __future__ import annotations

from typing import Final

from judges.llm.client import LLMRequest

OWN: Final = "own"
"""Questions that a judge file puts in its own words."""


def role_of(request: LLMRequest) -> str:
    """``verify``, ``extract``, else the name of the prompt (``transcribe``, ``mindact`` ...), else ``own``."""
    if request.purpose != "free":
        return request.purpose
    return OWN if request.prompt is None else request.prompt.partition("@")[0]
