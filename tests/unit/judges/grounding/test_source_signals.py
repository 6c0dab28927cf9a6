from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cache.capture import Capture, CaptureOutcome
from judges.grounding.source_signals import (
    SourceSignal,
    looks_like_another,
    source_signals,
    url_texts,
)


def signals_of(url: str, final_url: str | None = None, *, chain: tuple[str, ...] = ()) -> set[SourceSignal]:
    return set(
        source_signals(
            Capture(
                id="1",
                url=url,
                key=url,
                outcome=CaptureOutcome.OK,
                captured_at=datetime(2025, 8, 1, tzinfo=UTC),
                duration_s=0.1,
                backend="fake",
                final_url=final_url,
                chain=chain,
            )
        )
    )


@pytest.mark.parametrize(
    ("url", "final_url", "expected"),
    [
        ("https://www.nature.com/articles/1", None, set()),
        ("https://pastebin.com/raw/x8", None, {SourceSignal.PASTE}),
        ("https://bit.ly/x", "https://a.example/", {SourceSignal.SHORTENER, SourceSignal.OTHER_SITE}),
        ("https://good.org@evil.org/", None, {SourceSignal.CREDENTIALS}),
        ("https://xn--80ak6aa92e.com/", None, {SourceSignal.LOOK_ALIKE}),
        ("https://someone.medium.com/p", None, {SourceSignal.USER_CONTENT}),
        ("https://a.example/search?q=bridge", None, {SourceSignal.SEARCH}),
        ("https://a.example/?q=bridge", None, {SourceSignal.SEARCH}),
        ("https://a.example/search/bridge", None, {SourceSignal.SEARCH}),
        ("https://doi.org/10.1/2", "https://press.example/2", {SourceSignal.OTHER_SITE}),
        ("http://a.co.uk/x", "https://www.a.co.uk/x", set()),
        ("https://a.org/go?to=https%3A%2F%2Fevil.org%2Fp", "https://evil.org/p", {SourceSignal.OPEN_REDIRECT}),
        ("https://a.org/go/https://evil.org/p", "https://evil.org/p", {SourceSignal.OPEN_REDIRECT}),
        ("https://[broken", None, set()),
    ],
)
def test_url_has_its_signals(url: str, final_url: str | None, expected: set[SourceSignal]):
    assert signals_of(url, final_url) == expected


def test_shortener_in_the_redirect_chain_is_reported():
    chain = ("https://a.example/", "https://t.co/x", "https://b.example/")
    assert SourceSignal.SHORTENER in signals_of(chain[0], chain[-1], chain=chain)


@pytest.mark.parametrize(
    ("host", "imitates"),
    [
        ("example.com", False),
        ("p\u0430ypal.com", True),
        ("m\u00fcnchen.de", False),
        ("xn--zzzzzzzzz.com", True),
    ],
)
def test_look_alike_host_is_detected(host: str, imitates: bool):
    assert looks_like_another(host) is imitates


@pytest.mark.parametrize(
    ("url", "carried"),
    [
        ("https://a.example/?q=the+bridge+was+opened", ("the bridge was opened",)),
        ("https://a.example/search/the-bridge-was-opened", ("the bridge was opened",)),
        ("https://a.example/#:~:text=the%20bridge%20was%20opened", ("the bridge was opened",)),
        ("https://a.example/wiki/the-bridge-was-opened", ()),
        ("https://[broken", ()),
    ],
)
def test_text_that_the_requester_put_into_the_url_is_extracted(url: str, carried: tuple[str, ...]):
    assert url_texts([url]) == carried
