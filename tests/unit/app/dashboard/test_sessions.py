"""Sessions: random tokens for API keys, kept in memory for a limited time."""

from __future__ import annotations

from app.dashboard.sessions import SESSION_S, Sessions


class ManualClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_token_gives_its_key_until_the_session_is_closed():
    sessions = Sessions()
    token = sessions.open("secret")
    assert sessions.key(token) == "secret"
    assert "secret" not in token
    sessions.close(token)
    assert sessions.key(token) is None
    assert sessions.key(None) is None
    assert sessions.key("guess") is None


def test_session_expires():
    clock = ManualClock()
    sessions = Sessions(monotonic=clock)
    token = sessions.open("secret")
    clock.now = SESSION_S - 1
    assert sessions.key(token) == "secret"
    clock.now = SESSION_S
    assert sessions.key(token) is None


def test_form_token_is_valid_only_for_its_session():
    sessions = Sessions()
    mine, yours = sessions.open("a"), sessions.open("b")
    assert sessions.is_form_token(mine, sessions.form_token(mine))
    assert not sessions.is_form_token(mine, sessions.form_token(yours))
    assert not sessions.is_form_token(mine, "")
    assert not Sessions().is_form_token(None, sessions.form_token(None))
