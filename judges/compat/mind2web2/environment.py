"""Environment variables that objects of task scripts use. As for the service, they can also be in a file ``.env``.

``LLMClient("openai")`` and ``GoogleMapsTool()`` have no arguments for their keys. The public toolkit reads the keys
from the environment, so this module does too, when such an object is created and never on import. The service itself
does not use this module; it has its settings.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from dotenv import dotenv_values

from judges.llm.models import DEFAULT_MODEL

_YES = frozenset({"1", "true", "t", "yes", "y", "on"})  # same values as in the service's settings
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


def value_of(name: str) -> str | None:
    """Return a variable of the environment, or else of ``.env``; None if it is unset or empty."""
    value = os.environ.get(name)
    if value is None:
        with suppress(PermissionError):  # a task file may not read it
            value = dotenv_values(".env").get(name)
    return (value or "").strip() or None


def set_value(name: str, value: str | None) -> None:
    """Set an environment variable of this process for task scripts; None leaves it as it is."""
    if value is not None:
        os.environ[name] = value


def required_key(name: str) -> str:
    """Return the value of a variable that contains a key.

    Raises:
        ValueError: it is not set.
    """
    key = value_of(name)
    if key is None:
        raise ValueError(f"{name} is not set")
    return key


def model_name() -> str:
    """Return the configured model without its provider."""
    configured = value_of("ASSAY_MODEL")
    if configured is None:
        return DEFAULT_MODEL
    provider_end = min((place for mark in "/:" if (place := configured.find(mark)) >= 0), default=-1)
    return configured[provider_end + 1 :]


def browser_path() -> Path | None:
    """Return the configured browser for captures, or None to search for one."""
    configured = value_of("ASSAY_BROWSER")
    return None if configured is None else Path(configured)


def browser_unsandboxed() -> bool:
    """Return whether the browser may run without its sandbox if none is available.

    Raises:
        ValueError: the variable is neither true nor false.
    """
    configured = (value_of("ASSAY_BROWSER_UNSANDBOXED") or "false").lower()
    if configured not in _YES | _NO:
        raise ValueError(f"ASSAY_BROWSER_UNSANDBOXED={configured} is neither true nor false")
    return configured in _YES


def egress_allow() -> frozenset[str]:
    """Return ``host:port`` of the private addresses that captures may access."""
    listed = (value_of("ASSAY_EGRESS_ALLOW") or "").split(",")
    return frozenset(host.strip().lower() for host in listed if host.strip())
