"""Sign-in sessions.

API keys are held in the memory of this process only, never in a cookie, on disk or in the database.
The cookie contains a random token. After a restart, users must sign in again. A revoked key stops working immediately,
because every page sends it to the API.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

COOKIE = "assay_session"
SESSION_S = 12 * 3600.0
MAX_SESSIONS = 1000
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Session:
    key: str
    ends_at: float


class Sessions:
    """API keys by the digest of their session token. If there are too many, the oldest session is closed."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._open: OrderedDict[str, _Session] = OrderedDict()
        self._secret = secrets.token_bytes(_TOKEN_BYTES)

    def open(self, key: str) -> str:
        """Open a session and return its token for the cookie."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._open[_digest(token)] = _Session(key, self._monotonic() + SESSION_S)
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)
        return token

    def key(self, token: str | None) -> str | None:
        """Return the API key of a session, or None if the session does not exist or has expired."""
        if token is None:
            return None
        session = self._open.get(_digest(token))
        if session is None:
            return None
        if session.ends_at <= self._monotonic():
            self.close(token)
            return None
        return session.key

    def close(self, token: str | None) -> None:
        if token is not None:
            self._open.pop(_digest(token), None)

    def form_token(self, token: str | None) -> str:
        """Return the CSRF token that forms must contain. Other web sites cannot read it."""
        return hmac.new(self._secret, (token or "").encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def is_form_token(self, token: str | None, candidate: str) -> bool:
        return hmac.compare_digest(self.form_token(token).encode(), candidate.encode("utf-8", "replace"))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
