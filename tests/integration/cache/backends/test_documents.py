"""Bytes that are no web page, through the real child process."""

from __future__ import annotations

import time

import psutil
import pytest

from cache.backends.documents import ByteKind, decode_text, read_document, sniff
from cache.capture import CaptureOutcome, PageKind
from cache.errors import DocumentRejected
from tests.standin.documents import image_bytes, image_size, pdf_of_a_scan, pdf_of_nested_forms, pdf_with_pages


@pytest.mark.parametrize(
    ("data", "content_type", "kind"),
    [
        (b"%PDF-1.7\n...", "text/html", ByteKind.PDF),
        (b"\r\n  junk %PDF-1.4\n...", "application/octet-stream", ByteKind.PDF),
        (b"<!doctype html><p>x", "application/pdf", ByteKind.HTML),
        (b"\n<!-- c --><html><body>x", "application/octet-stream", ByteKind.HTML),
        (b"plain words", "text/html; charset=utf-8", ByteKind.HTML),
        (b"<p>about %PDF- files", "text/html", ByteKind.HTML),
        (b"<html><b>shown as written", "text/plain", ByteKind.TEXT),
        (b'{"a": 1}', "application/json", ByteKind.TEXT),
        (b'{"a": 1}', "application/ld+json", ByteKind.TEXT),
        (b"a,b\n1,2\n", "application/octet-stream", ByteKind.TEXT),
        (b"<rss><item/></rss>", "application/rss+xml", ByteKind.TEXT),
        (b"\x89PNG\r\n\x1a\n....", "text/plain", ByteKind.IMAGE),
        (b"RIFF....WEBPVP8 ", "", ByteKind.IMAGE),
        (b"PK\x03\x04\x00\x00", "application/zip", ByteKind.OTHER),
        (b"\x00\x01\x02", "", ByteKind.OTHER),
        (b"", "", ByteKind.OTHER),
    ],
)
def test_bytes_decide_what_they_are(data: bytes, content_type: str, kind: ByteKind) -> None:
    assert sniff(data, content_type) is kind


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("naïve".encode(), "text/plain", "naïve"),
        ("naïve".encode("latin-1"), "text/plain; charset=ISO-8859-1", "naïve"),
        ("naïve".encode("latin-1"), "text/plain", "naïve"),
        (b"\xef\xbb\xbfnamed", "text/plain; charset=latin-1", "named"),
        ("日本".encode("utf-16"), "text/plain", "日本"),
        ("日本".encode("shift_jis"), 'text/plain; charset="shift_jis"', "日本"),
        (b"x", "text/plain; charset=no-such-thing", "x"),
    ],
)
def test_text_is_decoded_as_it_says(data: bytes, content_type: str, text: str) -> None:
    assert decode_text(data, content_type) == text


async def test_a_pdf_gives_visible_text_and_an_image_a_page() -> None:
    document = await read_document(pdf_with_pages(3), "application/pdf", deadline_s=30)
    assert document.kind is PageKind.PDF
    assert [f"Page number {n} is visible" in document.text for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert len(document.screenshots) == 3
    assert image_size(document.screenshots[0])[0] <= 1100
    assert document.links[0] == ("Page number 1 is visible", "https://example.org/source")
    assert document.partial == ""


async def test_words_of_a_pdf_that_nobody_sees_are_kept_apart() -> None:
    document = await read_document(pdf_with_pages(1), "application/pdf", deadline_s=30)
    for word in ("whitewords", "invisiblewords", "tinywords"):
        assert word not in document.text
        assert word in document.hidden_text
    assert "offpagewords" not in document.text


async def test_a_long_pdf_gives_text_of_100_pages_and_images_of_50() -> None:
    document = await read_document(pdf_with_pages(105, width=300, height=200), "application/pdf", deadline_s=60)
    assert "Page number 100 is visible" in document.text
    assert "Page number 101 is visible" not in document.text
    assert len(document.screenshots) == 50


@pytest.mark.parametrize(("width", "height"), [(9000, 9000), (14400, 200), (200, 14400)])
async def test_a_page_of_any_size_is_drawn_within_bounds(width: float, height: float) -> None:
    document = await read_document(pdf_with_pages(1, width=width, height=height), "application/pdf", deadline_s=30)
    drawn = image_size(document.screenshots[0])
    assert drawn[0] <= 1101
    assert drawn[1] <= 10_001


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf_with_pages(1, password="secret"), "encrypted"),
        (pdf_with_pages(30)[:3000], "unreadable"),
        (b"%PDF-1.7 and then nothing of use", "unreadable"),
        (image_bytes(50_000, 50_000, mode="1"), "bomb"),
        (image_bytes(9_000, 9_000, mode="L"), "bomb"),
        (image_bytes(100, 100)[:40], "unreadable"),
    ],
)
async def test_what_cannot_be_decoded_has_a_named_outcome(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(data, "application/octet-stream", deadline_s=20)
    assert rejected.value.outcome is CaptureOutcome.DAMAGED
    assert reason in rejected.value.detail


async def test_a_pdf_that_never_finishes_is_killed_at_its_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(pdf_of_nested_forms(), "application/pdf", deadline_s=1.5)
    assert rejected.value.outcome is CaptureOutcome.DAMAGED
    assert "time limit" in rejected.value.detail
    assert time.monotonic() - began < 5
    assert not [child for child in psutil.Process().children() if "document_child" in " ".join(child.cmdline())]


async def test_what_a_scanner_read_is_text_and_is_known_not_to_be_on_the_paper() -> None:
    document = await read_document(pdf_of_a_scan("words of the layer"), "application/pdf", deadline_s=20)
    assert document.text == document.hidden_text == "words of the layer"


async def test_words_under_a_picture_are_known_not_to_be_on_the_paper() -> None:
    data = pdf_of_a_scan("layer", covered="covered words")
    document = await read_document(data, "application/pdf", deadline_s=20)
    assert "covered words" in document.hidden_text


async def test_words_over_a_picture_are_on_the_paper() -> None:
    document = await read_document(pdf_with_pages(1), "application/pdf", deadline_s=20)
    assert "Page number 1 is visible" not in document.hidden_text


async def test_a_picture_is_a_page_of_its_own() -> None:
    document = await read_document(image_bytes(3000, 2000, mode="RGBA"), "image/png", deadline_s=20)
    assert document.kind is PageKind.IMAGE
    assert image_size(document.screenshots[0]) == (1100, 733)


async def test_plain_text_is_a_page_without_a_picture() -> None:
    document = await read_document(b"name,born\nAda,1815\n", "text/csv", deadline_s=20)
    assert (document.kind, document.text, document.screenshots) == (PageKind.TEXT, "name,born\nAda,1815\n", ())


async def test_what_is_no_page_at_all_is_unsupported() -> None:
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(b"PK\x03\x04" + bytes(100), "application/zip", deadline_s=20)
    assert rejected.value.outcome is CaptureOutcome.UNSUPPORTED
