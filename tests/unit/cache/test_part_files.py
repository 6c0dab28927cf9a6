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


def test_picture_that_is_shown_unchanged_has_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    assert PartFiles(folder).parts(jpeg(), DEFAULT_LIMITS) == (jpeg(),)
    assert not folder.exists()


def test_unreadable_picture_is_remembered_as_such(tmp_path: Path) -> None:
    assert PartFiles(tmp_path).parts(TALL[:-100], DEFAULT_LIMITS) == ()
    with counted_decodes() as decoded:
        assert PartFiles(tmp_path).parts(TALL[:-100], DEFAULT_LIMITS) == ()
    assert decoded == []


@pytest.mark.parametrize("damaged", [b"", b"{}", b"[]\n", b'{"sizes": [1], "sha256": "00"}\nx', b"\xff\n"])
def test_damaged_file_is_replaced(tmp_path: Path, damaged: bytes) -> None:
    PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS)
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for content in (damaged, whole[:-1], whole[:-1] + b"x"):
        file.write_bytes(content)
        assert PartFiles(tmp_path).parts(TALL, DEFAULT_LIMITS) == PARTS
        assert file.read_bytes() == whole


def test_folder_that_cannot_be_written_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert PartFiles(tmp_path / "file" / "parts").parts(TALL, DEFAULT_LIMITS) == PARTS
    (tmp_path / "read-only").mkdir(mode=0o555)
    assert PartFiles(tmp_path / "read-only" / "parts").parts(TALL, DEFAULT_LIMITS) == PARTS
    assert not list((tmp_path / "read-only").iterdir())


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
