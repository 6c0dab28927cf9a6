"""Parts of screenshots as they are shown to models."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from cache.page_text.screenshot_parts import scaled_image, screenshot_parts
from tests.fakes.decodes import counted_decodes
from tests.standin.documents import image_size


def striped(width: int, height: int, *, kind: str = "JPEG", first: int = 0) -> bytes:
    """Return an image whose grey values tell the row: ``first``, and one more every 100 px."""
    image = Image.new("L", (width, height))
    draw = ImageDraw.Draw(image)
    for stripe in range(-(-height // 100)):
        draw.rectangle((0, 100 * stripe, width, 100 * stripe + 99), fill=2 * (first + stripe))
    out = io.BytesIO()
    image.convert("RGB").save(out, kind)
    return out.getvalue()


def stripe(part: bytes, row: int) -> int:
    """Return the stripe of a row; rows below 0 count from the bottom."""
    with Image.open(io.BytesIO(part)) as image:
        shade = image.convert("L").getpixel((image.width // 2, row % image.height))
    assert isinstance(shade, int)
    return round(shade / 2)


def test_complete_jpeg_that_fits_is_passed_through_without_decoding() -> None:
    for picture in (striped(1100, 2000), striped(1155, 700)):
        with counted_decodes() as decoded:
            assert screenshot_parts([picture]) == (picture,)
            assert scaled_image(picture) is picture
        assert decoded == []


@pytest.mark.parametrize("width", [900, 1155])
def test_tall_page_is_decoded_once_and_shown_in_overlapping_parts(width: int) -> None:
    with counted_decodes() as decoded:
        parts = screenshot_parts([striped(width, 12_000)])
    assert decoded == ["jpeg"]
    assert [image_size(part) for part in parts] == [(width, 2000)] * 5
    assert [(stripe(part, 50), stripe(part, -50)) for part in parts] == [(19 * n, 19 * n + 19) for n in range(5)]


def test_width_above_the_tolerance_is_scaled() -> None:
    assert [image_size(part) for part in screenshot_parts([striped(1156, 2000)])] == [(1100, 1903)]
    [scaled] = screenshot_parts([striped(2200, 3000)])
    assert image_size(scaled) == (1100, 1500)
    assert (stripe(scaled, 25), stripe(scaled, -25)) == (0, 29)


def test_truncated_and_unreadable_pictures_are_left_out() -> None:
    whole = striped(1100, 1500, first=3)
    for damaged in (striped(1100, 1900)[:-500], striped(1100, 3000)[:-500], b"no picture", b""):
        assert screenshot_parts([damaged]) == ()
        assert scaled_image(damaged) is None
        assert [image_size(part) for part in screenshot_parts([damaged, whole])] == [(1100, 1500)]
