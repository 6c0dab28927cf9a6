"""Pages saved as MHTML: parsing in linear time."""

from __future__ import annotations

import base64
import quopri
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cache.capture import CaptureOutcome
from cache.errors import DocumentRejected
from cache.sources.uploads import MAX_PARTS, is_mhtml, read_mhtml

HTML = "<!doctype html><title>Bänke</title><h1>Bänke = Stühle</h1><p>Two of them.</p>"


def saved(
    html: bytes, encoding: str = "quoted-printable", *, before: bytes = b"", content_type: str = "text/html"
) -> bytes:
    """Return an MHTML file as written by browsers, with the page and one of its images."""
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "quoted-printable": quopri.encodestring,
        "base64": base64.encodebytes,
        "8bit": bytes,
    }
    encoded = encoders[encoding](html)
    parts = [
        f"Content-Type: {content_type}\nContent-ID: <frame-1@mhtml.blink>\nContent-Transfer-Encoding: {encoding}\n"
        f"Content-Location: https://towns.example/benches\n\n".encode()
        + encoded,
        b"Content-Type: image/png\nContent-Transfer-Encoding: base64\nContent-Location: https://towns.example/a.png\n\naGk=",
    ]
    head = (
        b"From: <Saved by Blink>\nSnapshot-Content-Location: https://towns.example/benches\n"
        b"Subject: =?utf-8?Q?B=C3=A4nke?=\nDate: Fri, 20 Nov 2026 13:00:00 +0100\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/related;\n\ttype="text/html";\n\tboundary="----Multipart--abc----"\n\n\n'
    )
    body = b"".join(b"------Multipart--abc----\n" + part + b"\n" for part in ([before] if before else []) + parts)
    return (head + body + b"------Multipart--abc------\n").replace(b"\n", b"\r\n")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
def test_page_url_title_and_time_are_read(encoding: str) -> None:
    data = saved(HTML.encode(), encoding)
    assert is_mhtml(data)
    page = read_mhtml(data)
    assert page.html.decode().strip() == HTML
    assert (page.url, page.title) == ("https://towns.example/benches", "Bänke")
    assert page.saved_at == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_page_is_the_first_html_part_and_keeps_its_charset() -> None:
    style = b"Content-Type: text/css\nContent-Location: https://towns.example/a.css\n\n/* <html> */"
    page = read_mhtml(saved(HTML.encode("latin-1"), "8bit", before=style, content_type="text/html; charset=latin-1"))
    assert page.html.decode("latin-1").strip() == HTML
    assert page.content_type == "text/html; charset=latin-1"


def test_truncated_file_is_not_whole() -> None:
    assert read_mhtml(WHOLE).is_complete
    assert read_mhtml(WHOLE + b"\r\n\r\n").is_complete
    assert not read_mhtml(WHOLE[: WHOLE.rindex(b"------Multipart")]).is_complete


@pytest.mark.parametrize("data", [b"", b"<!doctype html>", b"From: a friend\n\nhello"])
def test_other_data_is_not_mhtml(data: bytes) -> None:
    assert not is_mhtml(data)


WHOLE = saved(HTML.encode())


@pytest.mark.parametrize(
    "data",
    [
        WHOLE.replace(b"text/html", b"text/plain"),
        saved(b"x", "base64").replace(b"eA==", b"e"),
        b"Content-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n" + b"A: b\n" * 50_000,
    ],
)
def test_damaged_file_is_rejected(data: bytes) -> None:
    with pytest.raises(DocumentRejected) as refused:
        read_mhtml(data)
    assert refused.value.outcome is CaptureOutcome.DAMAGED


def test_nested_and_numerous_parts_are_read_in_linear_time() -> None:
    nested = b"".join(b"Content-Type: multipart/related; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(5000))
    crowded = b"Content-Type: multipart/related; boundary=x\n\n" + b"--x\nA: b\n\n" * (MAX_PARTS + 10)
    began = time.process_time()
    for data in (nested, crowded):
        with pytest.raises(DocumentRejected):
            read_mhtml(data)
    assert time.process_time() - began < 20
