from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

from cache.capture import SCREENSHOT_ROLE, Blob
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


class CountingSeparator(BlockBuilder):
    """Counts the blocks made, and in which threads."""

    def __init__(self) -> None:
        super().__init__(SECRET)
        self.labels: list[str] = []
        self.threads: set[int] = set()

    def block(self, label: str, text: str, *, beside: Sequence[str] = ()) -> str:
        self.labels.append(label)
        self.threads.add(threading.get_ident())
        return super().block(label, text, beside=beside)


async def test_a_page_is_prepared_once_however_often_and_wide_it_is_asked_for():
    separator = CountingSeparator()
    pages = PagePreparer(separator)
    evidence = page(screenshots=(b"jpeg",))
    prepared = await asyncio.gather(*(pages.prepare(evidence) for _ in range(20)))
    again = await pages.prepare(evidence)
    assert sorted(separator.labels) == ["page", "url"]
    assert all(each is again for each in prepared)


async def test_preparing_happens_off_the_event_loop():
    separator = CountingSeparator()
    await PagePreparer(separator).prepare(page())
    assert threading.get_ident() not in separator.threads


async def test_pictures_are_left_out_when_not_wanted():
    pages = PagePreparer(BlockBuilder(SECRET))
    evidence = page(screenshots=(b"jpeg",))
    assert (await pages.prepare(evidence, use_screenshot=False)).images == ()
    assert len((await pages.prepare(evidence)).images) == 1


async def test_what_a_picture_hashes_to_is_known_by_the_digests_and_not_by_what_its_capture_says():
    evidence = page(screenshots=(b"jpeg", b"more"))
    blobs = {f"{SCREENSHOT_ROLE}{place}": Blob(sha256="ef" * 32, size=4, media_type="image/jpeg") for place in "01"}
    evidence = replace(evidence, capture=replace(evidence.capture, blobs=blobs))
    for digests, known in (((), ["", ""]), (("11" * 32, "ab" * 32, "cd" * 32), ["ab" * 32, "cd" * 32])):
        prepared = await PagePreparer(BlockBuilder(SECRET)).prepare(replace(evidence, digests=digests))
        assert [picture.picture_sha256 for picture in prepared.images] == known


async def test_memory_is_bounded_and_the_page_used_last_stays():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=100_000)
    kept = [await pages.prepare(page(f"https://a.example/{n}", "word " * 1_000)) for n in range(20)]
    assert 0 < pages.cached_bytes <= 100_000
    assert await pages.prepare(page("https://a.example/19", "word " * 1_000)) is kept[19]
    assert await pages.prepare(page("https://a.example/0", "word " * 1_000)) is not kept[0]


async def test_a_page_larger_than_the_memory_is_still_prepared():
    pages = PagePreparer(BlockBuilder(SECRET), max_bytes=10)
    assert (await pages.prepare(page(text="long enough"))).text == "long enough"
    assert pages.cached_bytes == 0


def test_a_long_text_is_collapsed_and_cut_at_a_word():
    cut = cut_text("some words  \n " * 50_000)
    assert cut.endswith(TRUNCATION_NOTICE)
    body = cut.removesuffix(TRUNCATION_NOTICE)
    assert len(body) <= MAX_TEXT_CHARS
    assert body.endswith((" some", " words"))
    assert "  " not in body


def test_a_text_that_fits_once_collapsed_is_not_cut():
    assert cut_text("a" + " " * MAX_TEXT_CHARS + "b") == "a b"


def test_a_text_that_fits_is_left_alone():
    assert cut_text("two  spaces\n") == "two  spaces\n"


def test_links_are_whole_lines_within_their_room():
    lines = link_lines([("A  word\n", f"https://a.example/{n:0>100}") for n in range(2_000)])
    assert len(lines) <= MAX_LINKS_CHARS
    assert all(line.startswith("A word\thttps://a.example/") and len(line) == 125 for line in lines.split("\n"))


def test_what_is_not_shown_cannot_be_quoted():
    shown = prepare_page(page(text="some words  \n " * 50_000 + "the end of it"), BlockBuilder(SECRET))
    assert "the end of it" not in shown.index.folded.text
    assert shown.index.folded.text.startswith("some words some words")


def test_as_much_of_a_text_is_shown_as_the_prompt_holds():
    for text in ("some words  \n " * 50_000, "a" * (MAX_TEXT_CHARS + 5), "a" + " " * MAX_TEXT_CHARS + "b", "short"):
        shown = " ".join(text[: shown_chars(text)].split())
        assert shown == " ".join(cut_text(text).removesuffix(TRUNCATION_NOTICE).split())
