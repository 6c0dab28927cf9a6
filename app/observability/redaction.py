"""Redaction of secrets in logs, stored errors and tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from judges.llm.provider_adapter import is_secret

MASK = "[redacted]"
_CREDENTIALS = re.compile(
    r"(?i)(\b(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key|api[_-]?key)\b['\"]?\s*[:=]\s*['\"]?)"
    r"((?:bearer|basic)\s+)?[^\s'\",;]+"
)
_KEY_SHAPES = re.compile(
    r"\bassay_[0-9a-z]{10}_[A-Za-z0-9_-]{43}|\bsk-[A-Za-z0-9_-]{16,}|\bAKIA[A-Z0-9]{16}\b|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


class Redactor:
    """Replaces known secrets, and text that looks like a credential, with a mask."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: if one secret contains another, the whole one must be masked.
        known = sorted(filter(is_secret, set(secrets)), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self._as_bytes = re.compile(b"|".join(re.escape(item.encode()) for item in known)) if known else None

    def mask_known(self, text: str) -> str:
        """Mask known secrets only, not text that merely looks like a credential."""
        return text if self._known is None else self._known.sub(MASK, text)

    def contains_secret(self, data: bytes) -> bool:
        """Return whether the data contains a known secret."""
        return self._as_bytes is not None and self._as_bytes.search(data) is not None

    def redact(self, text: str) -> str:
        """Mask known secrets and text that looks like a credential."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        text = _CREDENTIALS.sub(lambda match: f"{match[1]}{MASK}", text)
        return _KEY_SHAPES.sub(MASK, text)
