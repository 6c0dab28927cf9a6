from __future__ import annotations

import pytest

from app.observability.redaction import MASK, Redactor


def test_known_secrets_are_masked_wherever_they_stand():
    redactor = Redactor(["hunter2-secret"])
    assert redactor.redact("key=hunter2-secret; again hunter2-secret.") == f"key={MASK}; again {MASK}."


def test_a_secret_inside_a_longer_one_leaves_nothing_of_it():
    assert Redactor(["secret", "secret-and-more"]).redact("a secret-and-more b") == f"a {MASK} b"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef123456",
        "{'authorization': 'Bearer abcdef123456'}",
        '{"api_key": "abcdef123456"}',
        "Set-Cookie: abcdef123456; Path=/",
        "postgresql://user:abcdef123456@host/db",
        "the key sk-abcdef1234567890abcdef was refused",
    ],
)
def test_what_looks_like_a_credential_is_masked_unknown_as_it_is(text: str):
    redacted = Redactor().redact(text)
    assert "abcdef123456" not in redacted
    assert MASK in redacted


@pytest.mark.parametrize("text", ["", "The author is Authorin.", "https://example.org/a:b@c", "a cookie recipe"])
def test_ordinary_text_is_left_alone(text: str):
    assert Redactor(["", "abc"]).redact(text) == text
