"""API keys that are no secrets: local model servers need none, and the SDK requires one."""

from __future__ import annotations

from typing import Final

_MIN_SECRET_CHARS: Final = 4
_PLACEHOLDERS: Final = frozenset(
    {"assay", "dummy", "empty", "local", "none", "not-needed", "null", "ollama", "test", "vllm"}
)
"""In lower case: usual keys of local model servers, and the access key ID in docker-compose.yml."""


def is_secret(value: str) -> bool:
    """Return whether a key or password has to be masked. Pages and messages contain the others as words or letters."""
    return len(value) >= _MIN_SECRET_CHARS and value.lower() not in _PLACEHOLDERS
