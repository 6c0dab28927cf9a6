from __future__ import annotations

import lzma
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges import tokenizers
from judges.tokenizers import (
    TEXT_ENCODING,
    TokenizerUnusable,
    first_tokens,
    load_encoding,
    text_encoding,
    tokens_of,
    unpacked_ranks,
)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_other_rank_file_is_rejected(name: str):
    with pytest.raises(TokenizerUnusable, match="SHA-256"):
        unpacked_ranks(lzma.compress(b"IQ== 0\n"), name)
    with pytest.raises(TokenizerUnusable, match="unpacked"):
        unpacked_ranks(b"not packed", name)


@pytest.mark.slow
def test_tokens_of_o200k_base_equal_the_published_ones():
    encoding = load_encoding("o200k_base")
    assert encoding.encode("hello world") == [24912, 2375]
    assert encoding.encode("<|endoftext|>", allowed_special="all") == [199_999]


def unusable(*_: object) -> NoReturn:
    raise AssertionError("the tokenizer was loaded")


def test_text_within_the_limit_in_bytes_needs_no_tokenizer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokenizers, "load_encoding", unusable)
    assert first_tokens("a" * 50 + "ü" * 25, 100) is None
    with pytest.raises(AssertionError, match="loaded"):
        first_tokens("a" * 51 + "ü" * 25, 100)


@pytest.mark.slow
@given(text=st.text() | st.text(st.sampled_from("etaoin shrdlu.,\n  0123éüßж中🙂"), max_size=300))
def test_text_has_at_least_as_many_tokens_in_a_part_of_the_vocabulary(text: str):
    text = text.encode("utf-8", "replace").decode()
    whole = len(tokens_of(text, text_encoding()))
    assert all(len(tokens_of(text, load_encoding(TEXT_ENCODING, ranks))) >= whole for ranks in (256, 5_000, 50_000))


def test_text_is_cut_after_its_first_tokens():
    text = "One line.\n\n  Another   line.\n" * 10
    kept = first_tokens(text, 7)
    assert kept is not None
    assert text.startswith(kept)
    assert len(tokens_of(kept, text_encoding())) == 7


def test_very_long_runs_of_white_space_are_counted():
    assert len(tokens_of(" " * 300_000 + "x", text_encoding())) > 1_000


def test_special_tokens_are_ordinary_text():
    assert len(tokens_of("<|endoftext|>", text_encoding())) > 1
