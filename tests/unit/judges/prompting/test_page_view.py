from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cache.capture import SCREENSHOT_PREFIX, Blob
from judges.cpu_bound import LARGE_TEXT_CHARS
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import (
    MAX_LINKS_CHARS,
    MAX_TEXT_CHARS,
    TRUNCATION_NOTICE,
    PagePreparer,
    cut_text,
    link_lines,
    prepare_page,
    shown_chars,
)
from tests.fakes.pages import page

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
    evidence = page(screenshots=(b"jpeg",))
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
    evidence = page(screenshots=(b"jpeg",))
    assert (await pages.prepare(evidence, use_screenshot=False)).images == ()
    assert len((await pages.prepare(evidence)).images) == 1


async def test_picture_hashes_come_from_the_digests_and_not_from_the_capture():
    evidence = page(screenshots=(b"jpeg", b"more"))
    blobs = {f"{SCREENSHOT_PREFIX}{place}": Blob(sha256="ef" * 32, size=4, media_type="image/jpeg") for place in "01"}
    evidence = replace(evidence, capture=replace(evidence.capture, blobs=blobs))
    for digests, known in (((), ["", ""]), (("11" * 32, "ab" * 32, "cd" * 32), ["ab" * 32, "cd" * 32])):
        prepared = await PagePreparer(BlockBuilder(SECRET)).prepare(replace(evidence, digests=digests))
        assert [picture.picture_sha256 for picture in prepared.images] == known


async def test_cache_size_is_limited_and_the_last_used_page_is_retained():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=100_000)
    kept = [await pages.prepare(page(f"https://a.example/{n}", "word " * 1_000)) for n in range(20)]
    assert 0 < pages.cached_bytes <= 100_000
    assert await pages.prepare(page("https://a.example/19", "word " * 1_000)) is kept[19]
    assert await pages.prepare(page("https://a.example/0", "word " * 1_000)) is not kept[0]


async def test_page_larger_than_the_cache_is_prepared():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=10)
    assert (await pages.prepare(page(text="long enough"))).text == "long enough"
    assert pages.cached_bytes == 0


def test_long_text_is_collapsed_and_cut_at_a_word():
    cut = cut_text("some words  \n " * 50_000)
    assert cut.endswith(TRUNCATION_NOTICE)
    body = cut.removesuffix(TRUNCATION_NOTICE)
    assert len(body) <= MAX_TEXT_CHARS
    assert body.endswith((" some", " words"))
    assert "  " not in body


def test_text_that_fits_after_collapsing_is_not_cut():
    assert cut_text("a" + " " * MAX_TEXT_CHARS + "b") == "a b"


def test_text_that_fits_is_unchanged():
    assert cut_text("two  spaces\n") == "two  spaces\n"


def test_links_are_whole_lines_within_their_limit():
    lines = link_lines([("A  word\n", f"https://a.example/{n:0>100}") for n in range(2_000)])
    assert len(lines) <= MAX_LINKS_CHARS
    assert all(line.startswith("A word\thttps://a.example/") and len(line) == 125 for line in lines.split("\n"))


def test_text_that_is_not_shown_cannot_be_quoted():
    shown = prepare_page(page(text="some words  \n " * 50_000 + "the end of it"), BlockBuilder(SECRET))
    assert "the end of it" not in shown.index.folded.text
    assert shown.index.folded.text.startswith("some words some words")


def test_shown_chars_equals_the_length_of_the_cut_text():
    for text in ("some words  \n " * 50_000, "a" * (MAX_TEXT_CHARS + 5), "a" + " " * MAX_TEXT_CHARS + "b", "short"):
        shown = " ".join(text[: shown_chars(text)].split())
        assert shown == " ".join(cut_text(text).removesuffix(TRUNCATION_NOTICE).split())
