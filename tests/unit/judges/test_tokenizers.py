from __future__ import annotations

import lzma

import pytest

from judges.tokenizers import TokenizerUnusable, load_encoding, unpacked_ranks


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_other_rank_file_is_rejected(name: str):
    with pytest.raises(TokenizerUnusable, match="SHA-256"):
        unpacked_ranks(lzma.compress(b"IQ== 0\n"), name)
    with pytest.raises(TokenizerUnusable, match="unpacked"):
        unpacked_ranks(b"not packed", name)


def test_tokens_of_o200k_base_equal_the_published_ones():
    encoding = load_encoding("o200k_base")
    assert encoding.encode("hello world") == [24912, 2375]
    assert encoding.encode("<|endoftext|>", allowed_special="all") == [199_999]
