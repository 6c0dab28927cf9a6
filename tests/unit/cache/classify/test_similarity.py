"""Similarity of two pages of one site, and the random sibling of a cited URL."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.backends.router import MIN_SIMILARITY, sibling_url, text_similarity

AT, BESIDE = "https://a.example/news/harbour-lamps", "https://a.example/news/3f9c0d2a77e1b465"
SORRY = "Sorry, there is nothing here. You may have followed an old link. Look into the index, or ask the editors."


def _similarity(text: str, other: str) -> float:
    return text_similarity(text, AT, other, BESIDE)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (SORRY, SORRY.upper().replace(" ", "\n")),
        (f"{SORRY} You asked for {AT}.", f"{SORRY} You asked for {BESIDE}."),
        (f"{SORRY} " * 2 + "Today: rain", f"{SORRY} " * 2 + "Today: sun"),
        ("\u627e\u4e0d\u5230\u9875\u9762", "\u627e\u4e0d\u5230\u9875\u9762"),
    ],
    ids=["case", "address", "word", "no spaces"],
)
def test_equivalent_texts_are_similar(text: str, other: str) -> None:
    assert _similarity(text, other) >= MIN_SIMILARITY


@pytest.mark.parametrize(
    "other",
    ["", "Nothing.", "The lamps of the harbour were lit by hand.", f"{SORRY} {'And much else besides, of late. ' * 4}"],
)
def test_different_texts_are_not_similar(other: str) -> None:
    assert _similarity(SORRY, other) < MIN_SIMILARITY


def test_empty_texts_are_not_similar() -> None:
    assert _similarity("", "") == 0.0


@given(st.text(max_size=300), st.text(max_size=300))
def test_similarity_is_symmetric_and_between_zero_and_one(text: str, other: str) -> None:
    similarity = text_similarity(text, AT, other, AT)
    assert 0.0 <= similarity <= 1.0
    assert similarity == text_similarity(other, AT, text, AT)


@given(st.from_regex(r"(/[a-z0-9%.-]{0,9}){0,5}", fullmatch=True), st.sampled_from(["", "?a=1", "#part", "?a=1#/b"]))
def test_sibling_url_is_in_the_same_folder_of_the_same_host(path: str, end: str) -> None:
    cited, beside = urlsplit(f"https://a.example:8443{path}{end}"), urlsplit("")
    beside = urlsplit(sibling_url(cited.geturl(), "zq81"))
    assert (beside.scheme, beside.netloc, beside.query, beside.fragment) == ("https", "a.example:8443", cited.query, "")
    assert beside.path.count("/") == max(1, cited.path.count("/"))
    assert "zq81" in beside.path
