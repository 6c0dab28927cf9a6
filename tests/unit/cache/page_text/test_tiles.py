"""Positions of the tiles of a tall screenshot, and tiles joined to one image."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cache.page_text.screenshot_parts import join_tiles, tile_spans
from tests.standin.documents import image_bytes, image_size


@given(st.integers(1, 40_000), st.integers(1, 7000))
def test_tiles_cover_the_image_and_none_exceeds_the_height(height: int, bound: int) -> None:
    spans = tile_spans(height, bound)
    assert spans[0][0] == 0
    assert [top for top, _ in spans[1:]] == [top + part for top, part in spans[:-1]]
    assert spans[-1][0] + spans[-1][1] == height
    assert all(0 < part <= bound for _, part in spans)


def test_tiles_are_joined_from_top_to_bottom() -> None:
    whole = join_tiles([image_bytes(20, height, kind="JPEG") for height in (3001, 3000)])
    assert whole is not None
    assert image_size(whole) == (20, 6001)
