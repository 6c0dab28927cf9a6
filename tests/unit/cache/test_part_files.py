"""Files with the parts of screenshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from cache.page_text.screenshot_parts import DEFAULT_LIMITS, PartFiles, ScreenshotLimits, screenshot_parts
from tests.fakes.decodes import counted_decodes
from tests.fakes.pages import jpeg

TALL = jpeg(60, 3500)
PARTS = screenshot_parts([TALL])


def test_parts_are_read_from_the_file_of_the_same_picture_and_limits(tmp_path: Path) -> None:
    with counted_decodes() as decoded:
        assert PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS) == PARTS
        assert PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS) == PARTS
        assert len(decoded) == 1
        assert len(PartFiles(tmp_path).parts(jpeg(60, 3500, "blue"), DEFAULT_LIMITS)) == 2
        assert len(PartFiles(tmp_path).parts(TALL, ScreenshotLimits(part_height=1000))) == 4
    assert len(decoded) == 3


@pytest.mark.parametrize("damaged", [b"", b'{"sizes": [1], "sha256": "00"}\nx'])
def test_damaged_file_is_replaced(tmp_path: Path, damaged: bytes) -> None:
    PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS)
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for content in (damaged, whole[:-1], whole[:-1] + b"x"):
        file.write_bytes(content)
        assert PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS) == PARTS
        assert file.read_bytes() == whole
