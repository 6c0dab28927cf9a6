"""Files with the parts of screenshots."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
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


def test_concurrent_calls_return_the_same_parts_and_leave_one_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(PartFiles(tmp_path).parts, TALL, DEFAULT_LIMITS) for _ in range(32)]
    assert all(call.result() == PARTS for call in calls)
    assert len(list(tmp_path.iterdir())) == 1


def test_oldest_files_are_deleted_when_the_folder_is_full(tmp_path: Path):
    colors = ("blue", "green", "white")
    PartFiles(tmp_path).parts(jpeg(60, 3500, colors[0]), DEFAULT_LIMITS)
    (oldest,) = tmp_path.iterdir()
    os.utime(oldest, (1, 1))
    files = PartFiles(tmp_path, max_bytes=int(2.5 * oldest.stat().st_size))
    for color in colors[1:]:
        assert len(files.parts(jpeg(60, 3500, color), DEFAULT_LIMITS)) == 2
    assert len(list(tmp_path.iterdir())) == 2
    assert not oldest.exists()
