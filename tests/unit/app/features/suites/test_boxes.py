from __future__ import annotations

import io
import zlib

import pytest
from PIL import Image

from app.features.suites.boxes import GOLD, PICKED, Box, draw_boxes
from judges.suites.errors import DataUnreadable
from tests.fakes.multimodal import picture


def box(role: str, x: float, y: float, width: float = 60, height: float = 40) -> Box:
    return Box(role=role, id="1", x=x, y=y, width=width, height=height)


def drawn_image(*boxes: Box, of: bytes | None = None) -> Image.Image:
    drawn, media_type = draw_boxes(of or picture(), boxes)
    assert media_type == "image/jpeg"
    return Image.open(io.BytesIO(drawn)).convert("RGB")


@pytest.mark.parametrize("at", [(-50, -50), (10_000, 10_000)])
def test_box_outside_the_image_is_ignored(at: tuple[float, float]):
    assert drawn_image(box(GOLD, *at), box(PICKED, *at, 1, 1)).size == (400, 300)


def test_image_with_too_many_pixels_is_rejected():
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = (60_000).to_bytes(4, "big")
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + size + b"\x08\x02\x00\x00\x00")
    bomb += chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(DataUnreadable, match=r"pixels|not a readable image"):
        draw_boxes(bomb, ())
