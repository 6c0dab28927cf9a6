"""What a judge script's own objects take from the environment when nobody hands it to them.

``LLMClient("openai")`` and ``GoogleMapsTool()`` have no arguments for their keys: the public toolkit reads them
from the environment, so this one module of the package does too, when such an object is made and never at import.
The service itself does not come this way; it is configured by its settings.
"""

from __future__ import annotations

import os
from pathlib import Path

from judges.llm.families import DEFAULT_MODEL

_YES = frozenset({"1", "true", "t", "yes", "y", "on"})  # the words that the service's own settings take
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


def value_of(name: str) -> str | None:
    """An environment variable without white space around it; None where it is unset or empty."""
    return os.environ.get(name, "").strip() or None


def required_key(name: str) -> str:
    """The value of a variable that holds a key.

    Raises:
        ValueError: it is not set.
    """
    key = value_of(name)
    if key is None:
        raise ValueError(f"{name} is not set")
    return key


def model_name() -> str:
    """The bare name of the configured model."""
    configured = value_of("ASSAY_MODEL")
    if configured is None:
        return DEFAULT_MODEL
    provider_end = min((place for mark in "/:" if (place := configured.find(mark)) >= 0), default=-1)
    return configured[provider_end + 1 :]


def browser_path() -> Path | None:
    """The browser to capture pages with; None: look for one."""
    configured = value_of("ASSAY_BROWSER")
    return None if configured is None else Path(configured)


def browser_unsandboxed() -> bool:
    """Whether captures may go without the browser's sandbox where there is none to be had.

    Raises:
        ValueError: the variable says neither yes nor no.
    """
    configured = (value_of("ASSAY_BROWSER_UNSANDBOXED") or "false").lower()
    if configured not in _YES | _NO:
        raise ValueError(f"ASSAY_BROWSER_UNSANDBOXED={configured} is neither true nor false")
    return configured in _YES


def egress_allow() -> frozenset[str]:
    """``host:port`` of the private addresses that captures may reach."""
    listed = (value_of("ASSAY_EGRESS_ALLOW") or "").split(",")
    return frozenset(host.strip().lower() for host in listed if host.strip())
