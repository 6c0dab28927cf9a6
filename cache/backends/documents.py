"""What bytes are, judged by themselves, and how those that are no web page become one."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from cache.backends.confined import ChildReport, decode_confined
from cache.capture import CaptureOutcome, Observation, PageKind
from cache.errors import DocumentRejected

MAX_PAGE_BYTES = 24 * 1024 * 1024
MAX_DOCUMENT_BYTES = 50 * 1024 * 1024
MAX_TEXT_CHARS = 2_000_000
SNIFFED_BYTES = 1024
_HTML_START = re.compile(
    rb"(?:\s|<!--.*?-->|<\?xml[^>]*>)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|h1|div|p|table|iframe|style|a|br)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\x00", b"MM\x00*")
_TEXT_TYPES = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-ndjson|csv|javascript)\b|application/x-(?:yaml|tex)"
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class ByteKind(StrEnum):
    """What bytes turned out to be."""

    HTML = "html"
    PDF = "pdf"
    IMAGE = "image"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The readable side of bytes that are no web page. ``partial`` says what cut it short, else empty."""

    kind: PageKind
    text: str
    hidden_text: str = ""
    screenshots: tuple[bytes, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    title: str = ""
    pdf: bytes | None = None
    partial: str = ""

    def observed_as(self, arrived: Observation) -> Observation:
        """The observation of a response, completed with what its bytes show."""
        return replace(
            arrived,
            outcome=CaptureOutcome.PARTIAL if self.partial else CaptureOutcome.OK,
            detail=self.partial,
            kind=self.kind,
            title=self.title,
            text=self.text,
            hidden_text=self.hidden_text,
            screenshots=self.screenshots,
            links=self.links,
            pdf=self.pdf,
        )


def is_html_type(content_type: str) -> bool:
    return _media_type(content_type) in _HTML_TYPES


def sniff(data: bytes, content_type: str) -> ByteKind:
    """What the bytes are: their own signature first, then what the server says, never the URL.

    >>> sniff(b"%PDF-1.7 ...", "text/html")
    <ByteKind.PDF: 'pdf'>
    >>> sniff(b"<!doctype html><p>x", "application/pdf")
    <ByteKind.HTML: 'html'>
    """
    head = data[:SNIFFED_BYTES]
    if b"%PDF-" in head and not _HTML_START.match(head):
        return ByteKind.PDF
    if head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return ByteKind.IMAGE
    media_type = _media_type(content_type)
    if media_type in _HTML_TYPES:
        return ByteKind.HTML
    if _HTML_START.match(head) and media_type != "text/plain":
        return ByteKind.HTML
    if _TEXT_TYPES.match(media_type) or _looks_like_text(head):
        return ByteKind.TEXT
    return ByteKind.OTHER


def byte_limit(head: bytes, content_type: str) -> int:
    """How many bytes of content are taken, by what the first ones say it is."""
    return MAX_DOCUMENT_BYTES if sniff(head, content_type) in (ByteKind.PDF, ByteKind.IMAGE) else MAX_PAGE_BYTES


async def read_document(data: bytes, content_type: str, *, deadline_s: float) -> Document:
    """A PDF, an image or plain text as a page; decoding happens in a child process.

    Raises:
        DocumentRejected: damaged, encrypted, a bomb, or of a type that cannot be shown (HTML is not shown here).
    """
    kind = sniff(data, content_type)
    if kind is ByteKind.PDF:
        report = await decode_confined("pdf", data, deadline_s=deadline_s)
        return _from_report(PageKind.PDF, report, pdf=data)
    if kind is ByteKind.IMAGE:
        return _from_report(PageKind.IMAGE, await decode_confined("image", data, deadline_s=deadline_s), pdf=None)
    if kind is ByteKind.TEXT:
        return Document(kind=PageKind.TEXT, text=decode_text(data, content_type)[:MAX_TEXT_CHARS])
    raise DocumentRejected(CaptureOutcome.UNSUPPORTED, f"content of type {_media_type(content_type) or 'unknown'}")


def decode_text(data: bytes, content_type: str) -> str:
    """Text by its byte order mark, the server's charset, UTF-8, or at last Latin-1."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    named = _CHARSET.search(content_type)
    for encoding in (*((named[1],) if named else ()), "utf-8"):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1")


def _from_report(kind: PageKind, report: ChildReport, *, pdf: bytes | None) -> Document:
    headers = [frame.header for frame in report.frames]
    reason = next((str(header["reason"]) for header in headers if header["type"] == "rejected"), "")
    pages = [frame for frame in report.frames if frame.header["type"] == "page"]
    if not pages:
        raise DocumentRejected(CaptureOutcome.DAMAGED, reason or f"bomb or damage: decoding ended by {report.cut}")
    document = next(header for header in headers if header["type"] == "document")
    left_out = int(document["pages"]) - len(pages) if report.cut or reason else 0
    hidden = "\n".join(str(page.header["hidden"]) for page in pages if page.header["hidden"])
    return Document(
        kind=kind,
        text="\n".join(str(page.header["text"]) for page in pages)[:MAX_TEXT_CHARS],
        hidden_text=hidden[:MAX_TEXT_CHARS],
        screenshots=tuple(page.body for page in pages if page.body),
        links=tuple((str(label), str(target)) for page in pages for label, target in page.header["links"]),
        title=str(document["title"]),
        pdf=pdf,
        partial=f"{left_out} pages left out: {reason or report.cut}" if left_out else "",
    )


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _looks_like_text(head: bytes) -> bool:
    if not head or b"\x00" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as broken:
        return broken.start > len(head) - 4 and broken.reason == "unexpected end of data"
    return True
