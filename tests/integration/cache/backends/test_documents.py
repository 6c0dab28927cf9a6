# ruff: noqa: RUF001 - letters and punctuation of other scripts
"""Documents that are not web pages, in the real child process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pymupdf
import pytest

from cache.backends.documents import (
    ByteKind,
    decode_html,
    decode_text,
    read_document,
    sniff,
)
from cache.capture import CaptureOutcome, PageKind
from cache.errors import DocumentRejected
from tests.fakes.processes import command_line, descendants, is_running
from tests.standin.documents import (
    image_size,
    pdf_of_a_scan,
    pdf_of_many_pages,
    pdf_of_nested_forms,
    pdf_with_a_layer_switched_off,
    pdf_with_pages,
    pdf_without_contents,
    png_of_size,
)


def servers() -> list[psutil.Process]:
    """Return the fork servers of this process."""
    return [each for each in psutil.Process().children() if "document_child" in command_line(each)]


def busy_children() -> list[psutil.Process]:
    """Return the child processes that decode documents."""
    return [child for server in servers() for child in descendants(server.pid) if is_running(child)]


async def wait_until_idle() -> None:
    """Wait until all killed child processes have ended."""
    async with asyncio.timeout(240):
        while busy_children():  # noqa: ASYNC110 - the state is in other processes
            await asyncio.sleep(0.05)


def wait_for(seen: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    deadline = time.monotonic() + 240
    while not (found := seen()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(
    ("data", "content_type", "kind"),
    [
        (b"%PDF-1.7\n...", "text/html", ByteKind.PDF),
        (b"\r\n  junk %PDF-1.4\n...", "application/octet-stream", ByteKind.PDF),
        (b"<!doctype html><p>x", "application/pdf", ByteKind.HTML),
        (b"plain words", "text/html; charset=utf-8", ByteKind.HTML),
        (b"<html><b>shown as written", "text/plain", ByteKind.TEXT),
        (b'{"a": 1}', "application/json", ByteKind.TEXT),
        (b"\x89PNG\r\n\x1a\n....", "text/plain", ByteKind.IMAGE),
        # Servers send unknown types as text, and texts can start with any bytes.
        (b"PK\x03\x04\x14\x00\x06\x00", "text/plain", ByteKind.OTHER),
        ("a,b\n1,2\n".encode("utf-16-le"), "text/csv", ByteKind.TEXT),
        ('{"год": 1931}'.encode("utf-16-be"), "application/json", ByteKind.TEXT),
        (b"\x01\x00\x02\x00\x03\x00\x10\x00" * 8, "text/plain", ByteKind.OTHER),
        (b"BMW sold two million cars.", "", ByteKind.TEXT),
        (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00", "", ByteKind.IMAGE),
        (b"The header %PDF-1.7 begins such a file.", "text/markdown", ByteKind.TEXT),
        (b"junk\n%PDF-1.4\n1 0 obj\n<<", "text/plain", ByteKind.PDF),
    ],
)
def test_document_kind_is_detected_from_bytes(data: bytes, content_type: str, kind: ByteKind) -> None:
    assert sniff(data, content_type) is kind


@pytest.mark.parametrize(
    ("data", "content_type", "text"),
    [
        ("naïve".encode(), "text/plain", "naïve"),
        ("naïve".encode("latin-1"), "text/plain", "naïve"),
        (b"\xef\xbb\xbfnamed", "text/plain; charset=latin-1", "named"),
        ("日本".encode("shift_jis"), 'text/plain; charset="shift_jis"', "日本"),
        (b"\x93quoted\x94", "text/plain; charset=iso-8859-1", "\u201cquoted\u201d"),
        (b"a-b", "text/plain; charset=punycode", "a-b"),
    ],
)
def test_text_is_decoded_with_its_charset(data: bytes, content_type: str, text: str) -> None:
    assert decode_text(data, content_type) == text


RUSSIAN = "Мост Халден был открыт в 1931 году. Он пересекает реку возле старой мельницы."
JAPANESE = "ハルデン橋は1931年に開通しました。川を渡り、古い水車小屋の近くにあります。"
WESTERN = "Le pont a été ouvert en 1931 près de l’hôtel – 12 €"


@pytest.mark.parametrize(
    ("text", "charsets"),
    [
        (RUSSIAN, "cp1251 koi8-r utf-16 utf-16-le utf-16-be"),
        (JAPANESE, "cp932 euc_jp utf-16 utf-16-le utf-16-be"),
        ("哈爾登大橋於1931年開通。它橫跨河流，靠近老磨坊和市場廣場。", "big5"),
        ("The bridge opened in 1931.", "utf-16 utf-16-le utf-16-be"),
        (WESTERN, "cp1252"),
        (f"Title\n{'—' * 40}\n", "cp1252"),
    ],
)
@pytest.mark.parametrize("content_type", ["text/plain", "text/markdown; charset=utf-8"])
def test_undeclared_charset_is_detected(text: str, charsets: str, content_type: str) -> None:
    for charset in charsets.split():
        data = text.encode(charset)
        assert sniff(data, content_type) is ByteKind.TEXT
        assert decode_text(data, content_type) == text
        assert decode_html(b"<p>" + data, "text/html").endswith(text) or charset.startswith("utf")


async def test_pdf_has_visible_text_separate_hidden_text_and_one_image_per_page() -> None:
    document = await read_document(pdf_with_pages(3), "application/pdf", deadline_s=300)
    assert document.kind is PageKind.PDF
    assert [f"Page number {n} is visible" in document.text for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert len(document.screenshots) == 3
    assert image_size(document.screenshots[0])[0] <= 1100
    assert document.links[0] == ("Page number 1 is visible", "https://example.org/source")
    assert document.missing_parts == ""
    for word in ("whitewords", "invisiblewords", "tinywords"):
        assert word not in document.text
        assert word in document.hidden_text
    assert "offpagewords" not in document.text
    assert "Page number 1 is visible" not in document.hidden_text
    data = pdf_with_a_layer_switched_off("On the paper", "offlayerwords")
    layered = await read_document(data, "application/pdf", deadline_s=300)
    assert "On the paper" in layered.text
    assert "offlayerwords" not in layered.text


async def test_long_pdf_has_text_of_all_pages_and_50_images() -> None:
    document = await read_document(pdf_with_pages(55, width=300, height=200), "application/pdf", deadline_s=300)
    assert "Page number 55 is visible" in document.text
    assert len(document.screenshots) == 50
    assert document.missing_parts == ""


async def test_pages_without_text_or_image_are_missing_parts() -> None:
    with pymupdf.open(stream=pdf_with_pages(50, width=300, height=200)) as pdf:
        for picture in (True, True, False):
            page = pdf.new_page(width=300, height=200)
            if picture:
                page.draw_circle((100, 100), 50)
        data = pdf.tobytes()
    document = await read_document(data, "application/pdf", deadline_s=300)
    assert document.missing_parts == "2 pages have no text, and their pictures are not shown"


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"", "text/plain"),
        (pdf_without_contents(), "application/pdf"),
    ],
)
async def test_document_without_content_is_empty(data: bytes, content_type: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(data, content_type, deadline_s=300)
    assert rejected.value.outcome is CaptureOutcome.EMPTY


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf_with_pages(1, password="secret"), "encrypted"),
        (pdf_with_pages(30)[:3000], "unreadable"),
        (pdf_of_many_pages(100_000), "unreadable: code=7: Invalid number of pages"),
        (png_of_size(50_000, 50_000), "bomb"),
    ],
)
async def test_undecodable_document_is_damaged_with_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(data, "application/octet-stream", deadline_s=300)
    assert rejected.value.outcome is CaptureOutcome.DAMAGED
    assert reason in rejected.value.detail


async def test_endless_pdf_is_killed_at_its_deadline() -> None:
    with pytest.raises(DocumentRejected) as rejected:
        await read_document(pdf_of_nested_forms(), "application/pdf", deadline_s=1)
    assert rejected.value.outcome is CaptureOutcome.DAMAGED
    assert "time limit" in rejected.value.detail
    await wait_until_idle()


async def test_cancelled_read_leaves_no_child_process() -> None:
    reading = asyncio.create_task(read_document(pdf_of_nested_forms(), "application/pdf", deadline_s=300))
    while not busy_children():  # noqa: ASYNC110 - the state is in other processes
        await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await wait_until_idle()


async def test_killed_fork_server_is_replaced() -> None:
    await read_document(pdf_of_a_scan("first"), "application/pdf", deadline_s=300)
    [server] = servers()
    server.kill()
    server.wait()
    document = await read_document(pdf_of_a_scan("second"), "application/pdf", deadline_s=300)
    assert document.text == "second"


def test_fork_server_and_children_end_with_killed_owner() -> None:
    program = (
        "import asyncio\n"
        "from cache.backends.documents import read_document\n"
        "from tests.standin.documents import pdf_of_nested_forms\n"
        "asyncio.run(read_document(pdf_of_nested_forms(), 'application/pdf', deadline_s=300))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as owner:
        started = wait_for(lambda: psutil.Process(owner.pid).children(recursive=True)[1:])
        started += psutil.Process(owner.pid).children()
        owner.kill()
    _, alive = psutil.wait_procs(started, timeout=240)
    assert not alive
