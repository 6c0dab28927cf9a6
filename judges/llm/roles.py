"""Roles of model requests. Usage and cost are reported by role."""

from __future__ import annotations

from typing import Final

from judges.llm.client import LLMRequest

OWN_ROLE: Final = "own"
"""Role of requests with messages that a judge file writes itself."""


def role_of(request: LLMRequest) -> str:
    """Return ``verify``, ``extract``, or else the name of the prompt (``transcribe``, ``mindact`` ...), or ``own``."""
    if request.purpose != "free":
        return request.purpose
    return OWN_ROLE if request.prompt is None else request.prompt.partition("@")[0]
