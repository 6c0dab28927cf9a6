from __future__ import annotations

import asyncio
import base64
import io
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from PIL import Image

from cache.capture import PageKind
from judges.cpu_bound import LARGE_TEXT_CHARS
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import (
    PagePreparer,
    prepare_page,
)
from judges.tokenizers import TRUNCATION_MARKER
from tests.fakes.pages import jpeg, page

SECRET = b"0123456789abcdef"


class CountingBlockBuilder(BlockBuilder):
    """Counts the blocks and records the threads that build them."""

    def __init__(self) -> None:
        super().__init__(SECRET)
        self.labels: list[str] = []
        self.threads: set[int] = set()

    def block(self, label: str, text: str, *, beside: Sequence[str] = ()) -> str:
        self.labels.append(label)
        self.threads.add(threading.get_ident())
        return super().block(label, text, beside=beside)


async def test_page_is_prepared_once_for_concurrent_and_later_requests():
    block_builder = CountingBlockBuilder()
    pages = PagePreparer(block_builder)
    evidence = page(screenshots=(jpeg(),))
    prepared = await asyncio.gather(*(pages.prepare(evidence) for _ in range(20)))
    again = await pages.prepare(evidence)
    assert sorted(block_builder.labels) == ["page", "url"]
    assert all(each is again for each in prepared)


@pytest.mark.parametrize("is_long", [True, False])
async def test_only_long_page_is_prepared_outside_the_event_loop(is_long: bool):
    block_builder = CountingBlockBuilder()
    await PagePreparer(block_builder).prepare(page(text="word " * (LARGE_TEXT_CHARS if is_long else 10)))
    assert (threading.get_ident() not in block_builder.threads) == is_long


def test_text_that_is_not_shown_cannot_be_quoted():
    text = "x. " * 60_000 + "the end of it"
    shown = prepare_page(page(text=text), BlockBuilder(SECRET))
    assert shown.text == text
    assert "the end of it" not in shown.index.folded.text
    assert shown.index.folded.text.startswith("x. x. ")
    body = shown.shown.removesuffix(TRUNCATION_MARKER)
    assert text.startswith(body)
    assert body in shown.blocks


def test_sections_of_a_screenshot_are_shown_in_overlapping_parts():
    shots = (jpeg(1100, 6000), jpeg(1100, 4000))
    shown = prepare_page(page(screenshots=shots), BlockBuilder(SECRET))
    assert [height_of(image) for image in shown.images] == [2000] * 5


def test_pages_of_a_pdf_are_shown_as_they_are():
    evidence = page(screenshots=(jpeg(800, 2500), jpeg(800, 2500)))
    evidence = replace(evidence, capture=replace(evidence.capture, kind=PageKind.PDF))
    assert [height_of(image) for image in prepare_page(evidence, BlockBuilder(SECRET)).images] == [2500, 2500]


def height_of(image: str) -> int:
    return Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))).height
