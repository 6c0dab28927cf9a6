"""Tall screenshots split into tiles, and tiles joined to one image."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.page_text import tiles
from cache.page_text.tiles import join_tiles, split_tall, tile_spans
from tests.standin.documents import image_bytes, image_size


def test_docstring_examples_are_correct() -> None:
    assert doctest.testmod(tiles).failed == 0


@given(st.integers(1, 40_000), st.integers(1, 7000))
def test_tiles_cover_the_image_and_none_exceeds_the_height(height: int, bound: int) -> None:
    spans = tile_spans(height, bound)
    assert spans[0][0] == 0
    assert [top for top, _ in spans[1:]] == [top + part for top, part in spans[:-1]]
    assert spans[-1][0] + spans[-1][1] == height
    assert all(0 < part <= bound for _, part in spans)


@pytest.mark.parametrize(
    ("height", "parts"), [(10, [10]), (6000, [6000]), (6001, [3001, 3000]), (10_000, [5000, 5000])]
)
def test_image_is_split_only_if_too_tall_and_can_be_joined_again(height: int, parts: list[int]) -> None:
    picture = image_bytes(20, height, kind="JPEG")
    split = split_tall(picture)
    assert [image_size(part) for part in split] == [(20, part) for part in parts]
    assert split != (picture,) or len(parts) == 1
    whole = join_tiles(split)
    assert whole is not None
    assert image_size(whole) == (20, height)


def test_single_tile_and_invalid_image_are_unchanged() -> None:
    assert join_tiles([b"as it is"]) == b"as it is"
    assert split_tall(b"no picture") == (b"no picture",)
    assert join_tiles([]) is None
    assert join_tiles([b"no picture", b"either"]) is None
