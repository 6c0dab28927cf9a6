"""Who is signed in. A key is kept in this process's memory only, never in a cookie, on disk or in the database.

The cookie holds a random name for it. After a restart people sign in again; a key that is revoked stops working at
the next page, because the API is asked with it every time.
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
LASTS_S = 12 * 3600.0
MAX_SESSIONS = 1000
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Session:
    key: str
    ends_at: float


class Sessions:
    """Keys by the digest of their session's token, the least recently opened out first."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._open: OrderedDict[str, _Session] = OrderedDict()
        self._secret = secrets.token_bytes(_TOKEN_BYTES)

    def open(self, key: str) -> str:
        """Begin a session; returns its token, for the cookie."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._open[_digest(token)] = _Session(key, self._monotonic() + LASTS_S)
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)
        return token

    def key(self, token: str | None) -> str | None:
        """The key behind a token; None where there is no such session any more."""
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
        """What a form must carry back: another web site cannot read it, so it cannot send it."""
        return hmac.new(self._secret, (token or "").encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def is_form_token(self, token: str | None, given: str) -> bool:
        return hmac.compare_digest(self.form_token(token).encode(), given.encode("utf-8", "replace"))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
