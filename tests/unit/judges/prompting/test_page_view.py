from __future__ import annotations

import asyncio
import base64
import io
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from PIL import Image

from cache.capture import SCREENSHOT_PREFIX, Blob, PageKind
from judges.cpu_bound import LARGE_TEXT_CHARS
from judges.prompting import page_view
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import (
    MAX_LINKS_CHARS,
    PagePreparer,
    link_lines,
    prepare_page,
)
from judges.tokenizers import TRUNCATION_MARKER
from tests.fakes.decodes import counted_decodes
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


async def test_pictures_are_omitted_if_not_wanted():
    pages = PagePreparer(BlockBuilder(SECRET))
    evidence = page(screenshots=(jpeg(),))
    assert (await pages.prepare(evidence, use_screenshot=False)).images == ()
    assert len((await pages.prepare(evidence)).images) == 1


async def test_hash_of_an_unchanged_picture_comes_from_the_digests_and_not_from_the_capture():
    evidence = page(screenshots=(jpeg(),))
    blobs = {f"{SCREENSHOT_PREFIX}0": Blob(sha256="ef" * 32, size=4, media_type="image/jpeg")}
    evidence = replace(evidence, capture=replace(evidence.capture, blobs=blobs))
    for digests, known in (((), ""), (("11" * 32, "ab" * 32), "ab" * 32)):
        prepared = await PagePreparer(BlockBuilder(SECRET)).prepare(replace(evidence, digests=digests))
        assert [picture.picture_sha256 for picture in prepared.images] == [known]


async def test_parts_of_a_picture_have_no_known_hash():
    prepared = await PagePreparer(BlockBuilder(SECRET)).prepare(page(screenshots=(jpeg(20, 2500),)))
    assert [picture.picture_sha256 for picture in prepared.images] == ["", ""]


async def test_prepared_parts_are_shown_without_decoding():
    evidence = page(screenshots=(jpeg(20, 2000), jpeg(20, 600)))
    with counted_decodes() as decoded:
        prepared = await PagePreparer(BlockBuilder(SECRET)).prepare(replace(evidence, in_parts=True))
    assert [height_of(image) for image in prepared.images] == [2000, 600]
    assert [image.picture_sha256 for image in prepared.images] == list(evidence.digests[1:])
    assert decoded == []


async def test_cache_size_is_limited_and_the_last_used_page_is_retained():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=100_000)
    kept = [await pages.prepare(page(f"https://a.example/{n}", "word " * 1_000)) for n in range(20)]
    assert await pages.prepare(page("https://a.example/19", "word " * 1_000)) is kept[19]
    assert await pages.prepare(page("https://a.example/0", "word " * 1_000)) is not kept[0]


async def test_page_larger_than_the_cache_is_prepared():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=10)
    prepared = await pages.prepare(page(text="long enough"))
    assert prepared.text == "long enough"
    assert await pages.prepare(page(text="long enough")) is not prepared


async def test_cached_pages_are_released_after_the_last_answer(monkeypatch: pytest.MonkeyPatch):
    released = asyncio.Event()
    monkeypatch.setattr(page_view, "IDLE_S", 0.0)
    monkeypatch.setattr(page_view, "return_freed_memory", released.set)
    pages, evidence = PagePreparer(BlockBuilder(SECRET)), page(screenshots=(jpeg(),))
    with pages.judging():
        with pages.judging():
            kept = await pages.prepare(evidence)
        for _ in range(10):
            await asyncio.sleep(0)  # a timer of the inner block, if there were one, has fired
        assert await pages.prepare(evidence) is kept
    async with asyncio.timeout(10):
        await released.wait()
    assert await pages.prepare(evidence) is not kept


def test_links_are_whole_lines_within_their_limit():
    lines = link_lines([("A  word\n", f"https://a.example/{n:0>100}") for n in range(2_000)])
    assert len(lines) <= MAX_LINKS_CHARS
    assert all(line.startswith("A word\thttps://a.example/") and len(line) == 125 for line in lines.split("\n"))


def test_text_that_is_not_shown_cannot_be_quoted():
    text = "some words  \n " * 60_000 + "the end of it"
    shown = prepare_page(page(text=text), BlockBuilder(SECRET))
    assert shown.text == text
    assert "the end of it" not in shown.index.folded.text
    assert shown.index.folded.text.startswith("some words some words")
    body = shown.shown.removesuffix(TRUNCATION_MARKER)
    assert text.startswith(body)
    assert body in shown.blocks


def test_page_within_its_limits_is_shown_whole():
    text = "some words  \n " * 60_000
    shots = (jpeg(20, 2000), jpeg(20, 1500))
    shown = prepare_page(page(text=text, screenshots=shots), BlockBuilder(SECRET), limit_page=False)
    assert shown.shown == text
    assert [base64.b64decode(image.partition(",")[2]) for image in shown.images] == list(shots)


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
