from __future__ import annotations

import pytest

from app.observability.logs import MASK, Redactor


def test_known_secrets_are_masked_anywhere_in_a_text():
    redactor = Redactor(["hunter2-secret"])
    assert redactor.redact("key=hunter2-secret; again hunter2-secret.") == f"key={MASK}; again {MASK}."


def test_secret_that_contains_another_one_is_masked_completely():
    assert Redactor(["secret", "secret-and-more"]).redact("a secret-and-more b") == f"a {MASK} b"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef123456",
        '{"api_key": "abcdef123456"}',
        "Set-Cookie: abcdef123456; Path=/",
        "postgresql://user:abcdef123456@host/db",
        "the key sk-abcdef1234567890abcdef was refused",
    ],
)
def test_unknown_credentials_are_masked_by_their_form(text: str):
    redacted = Redactor().redact(text)
    assert "abcdef123456" not in redacted
    assert MASK in redacted


@pytest.mark.parametrize("text", ["", "The author is Authorin.", "https://example.org/a:b@c", "a cookie recipe"])
def test_ordinary_text_is_unchanged(text: str):
    assert Redactor(["", "abc"]).redact(text) == text


@pytest.mark.parametrize("key", ["none", "EMPTY", "ollama", "assay"])
def test_key_that_is_a_placeholder_is_not_masked_in_other_text(key: str):
    text = f"The style is {key}."
    redactor = Redactor([key])
    assert redactor.redact(text) == text
    assert not redactor.contains_secret(text.encode())
