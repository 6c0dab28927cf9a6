"""Content type detection from bytes, and conversion of PDFs, images and plain text to pages.

Documents are decoded in a child process, with a deadline and an output limit.
"""

from __future__ import annotations

import asyncio
import atexit
import codecs
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import charset_normalizer
from w3lib.encoding import html_body_declared_encoding

from cache.backends import document_child
from cache.backends.plain_html import PlainPage, read_html
from cache.capture import CaptureOutcome, Observation, PageKind
from cache.confinement.privileges import DEFAULT_UID, user_change_problem
from cache.errors import CacheError, DocumentRejected
from cache.page_text.sentences import garbled_reason, unreadable_chars
from cache.page_text.text_boxes import Line, Piece, ScreenshotArea, places_json

MAX_OUTPUT_BYTES = 200 * 1024 * 1024
MAX_FRAME_BYTES = 32 * 1024 * 1024
_FINAL_TYPES = frozenset({"end", "rejected"})
DocumentKind: TypeAlias = Literal["pdf", "image", "html", "pdf-report", "html-report", "docx-report"]
SHORT_HTML_CHARS = 4_000
"""HTML up to this length is parsed in a thread: 30 MB and 0.1 s in the worst case."""
_DEADLINE_S = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One message of the child: header, and a JPEG or nothing."""

    header: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOutput:
    """Frames from the child. ``stop_reason``: why it was stopped early, or empty if it finished."""

    frames: tuple[Frame, ...]
    stop_reason: str


async def decode_in_child(
    kind: DocumentKind, data: bytes, *, deadline_s: float = _DEADLINE_S, frame_s: float = 20.0
) -> ChildOutput:
    """Decode a document in a child process, which is gone when this returns or raises. ``frame_s``: limit per page."""
    async with _running_child(kind, data) as frames:
        return await _collect_frames(frames, deadline_s, frame_s)


async def read_html_safely(html: str, base_url: str) -> PlainPage:
    """Extract the content of untrusted HTML, in a child process unless it is short.

    The parser needs quadratic time and memory for some HTML: 25 kB of nested formatting takes 700 MB.

    Raises:
        DocumentRejected: the child exceeded its limits of CPU time (1 s, and 1 s per MiB of UTF-8) or memory (1 GiB).
    """
    if len(html) <= SHORT_HTML_CHARS:
        return await asyncio.to_thread(read_html, html, base_url)
    data = await asyncio.to_thread(lambda: json.dumps({"html": html, "base_url": base_url}).encode("ascii"))
    output = await decode_in_child("html", data, frame_s=_DEADLINE_S)
    page = next((frame.body for frame in output.frames if frame.header["type"] == "html"), None)
    if page is None:
        raise DocumentRejected(CaptureOutcome.TOO_LARGE, "the HTML takes too much time or memory to parse")
    return await asyncio.to_thread(_plain_page, page)


def _plain_page(body: bytes) -> PlainPage:
    fields = json.loads(body)
    links = tuple((str(label), str(target)) for label, target in fields.pop("links"))
    return PlainPage(**fields | {"headlines": tuple(fields["headlines"]), "links": links})


@asynccontextmanager
async def _running_child(kind: DocumentKind, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Start a child for a document and yield the stream of its output."""
    server = await asyncio.to_thread(shared_server)
    # Sockets instead of a pipe: uvloop closes a pipe's descriptor twice, and a thread may have reused it in between.
    parent_end, child_end = socket.socketpair()
    try:
        frames, closing = await asyncio.open_connection(sock=parent_end)
    except BaseException:  # cancellation too must close the sockets
        parent_end.close()
        child_end.close()
        raise
    # Shielded: without the process id of a child that is starting, nothing could kill it.
    starting = asyncio.ensure_future(asyncio.to_thread(_start_child, server, kind, data, child_end))
    try:
        try:
            await asyncio.shield(starting)
            yield frames
        finally:
            await asyncio.to_thread(server.kill, await starting)
            await _wait_for_end(frames)
    finally:
        closing.close()


def _start_child(server: DocumentServer, kind: DocumentKind, data: bytes, child_end: socket.socket) -> int:
    """Pass a document to a child. ``child_end`` is closed in this process, so that the stream ends with the child."""
    with child_end, tempfile.TemporaryFile() as document:
        document.write(data)
        document.seek(0)
        return server.fork(kind, document.fileno(), child_end.fileno())


async def _wait_for_end(frames: asyncio.StreamReader) -> None:
    """Wait for the end of the stream, which marks the end of the child."""
    while await frames.read(MAX_FRAME_BYTES):
        pass


async def _collect_frames(stream: asyncio.StreamReader, deadline_s: float, frame_s: float) -> ChildOutput:
    frames: list[Frame] = []
    total = 0
    try:
        async with asyncio.timeout(deadline_s):
            while total <= MAX_OUTPUT_BYTES:
                async with asyncio.timeout(frame_s):
                    frame = await _next_frame(stream)
                if frame is None:
                    return ChildOutput(frames=tuple(frames), stop_reason="a crash or its limits")
                frames.append(frame)
                total += len(frame.body)
                if frame.header["type"] in _FINAL_TYPES:
                    return ChildOutput(frames=tuple(frames), stop_reason="")
    except TimeoutError:
        return ChildOutput(frames=tuple(frames), stop_reason="the time limit")
    return ChildOutput(frames=tuple(frames), stop_reason="the output limit")


async def _next_frame(stream: asyncio.StreamReader) -> Frame | None:
    """Return the next frame, or None if the stream has ended."""
    try:
        head_bytes, body_bytes = struct.unpack(">II", await stream.readexactly(8))
        if head_bytes + body_bytes > MAX_FRAME_BYTES:
            return None
        header = json.loads(await stream.readexactly(head_bytes))
        return Frame(header=header, body=await stream.readexactly(body_bytes))
    except asyncio.IncompleteReadError:
        return None


_PROGRAM: Final = Path(document_child.__file__)
_START_S: Final = 60.0
_ANSWER_BYTES: Final = 64


class DocumentServer:
    """Fork server for document decoding. Blocking and thread-safe. A server that has exited is restarted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def fork(self, kind: DocumentKind, document: int, frames: int) -> int:
        """Start a child that reads ``document`` and writes to ``frames`` (file descriptors). Return its process id.

        Raises:
            CacheError: the child cannot be started.
        """
        with self._lock:
            for _ in range(2):
                control = self._connect()
                with suppress(OSError):
                    socket.send_fds(control, [kind.encode("ascii")], [document, frames])
                    if answer := control.recv(_ANSWER_BYTES):
                        return int(answer)
                self._stop()
        raise CacheError("cannot start the process that decodes documents; check free memory and the process limit")

    def kill(self, pid: int) -> None:
        """Kill a child if it is still running."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.send(f"kill {pid}".encode("ascii"))

    def close(self) -> None:
        """Stop the server and all its children."""
        with self._lock:
            self._stop()

    def _connect(self) -> socket.socket:
        if self._control is None:
            parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with child_end:
                user = "" if user_change_problem(DEFAULT_UID) else str(DEFAULT_UID)
                self._process = subprocess.Popen(  # noqa: S603 - our own program, by its path
                    [sys.executable, "-I", str(_PROGRAM), str(_PROGRAM.parents[2]), user],
                    stdin=child_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    start_new_session=True,
                )
            parent_end.settimeout(_START_S)
            self._control = parent_end
        return self._control

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


class _SharedServer:
    """One server per process: a forked process must not use the socket of its parent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner_pid = 0
        self._server = DocumentServer()

    def get(self) -> DocumentServer:
        with self._lock:
            if self._owner_pid != os.getpid():
                self._owner_pid, self._server = os.getpid(), DocumentServer()
                atexit.register(self._server.close)
            return self._server


_shared = _SharedServer()


def shared_server() -> DocumentServer:
    """Return the server of this process."""
    return _shared.get()


MAX_PAGE_BYTES = 24 * 1024 * 1024
MAX_DOCUMENT_BYTES = 100 * 1024 * 1024
MAX_TEXT_CHARS = 2_000_000
SNIFFED_BYTES = 1024
_BEGINNING_CHARS = 40
_HTML_START = re.compile(
    rb"(?:\s|<!--.*?-->|<\?xml[^>]*>)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|h1|div|p|table|iframe|style|a|br)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*")
_TEXT_TYPES = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-ndjson|csv|javascript)\b|application/x-(?:yaml|tex)"
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
# Python codecs that are not charsets of pages. Some take quadratic time.
_EXCLUDED_CODECS = frozenset(
    {"punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf_7", "undefined", "mbcs", "oem", "palmos"}
)
_NAMES_OF_CP1252 = frozenset({"iso8859-1", "ascii"})
"""Charset names that servers use for Windows-1252. Browsers decode them as that."""
_WIDE_CODECS = frozenset({"utf-1", "utf-3"})  # utf-16 and utf-32, which contain many zero bytes
_UPPER_HALF = re.compile(rb"[\x80-\xff]")
_ONE_BYTE_CHARSETS = ["cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874"]
_MULTI_BYTE_CHARSETS = ["cp932", "euc_jp", "gb18030", "big5", "euc_kr"]
_WESTERN_CHARSETS = ["cp1252", "latin_1"]
_DETECTION_SAMPLE_BYTES = 16_384
_MIN_DETECTION_BYTES = 16
_MAX_WESTERN_SHARE = 0.25
_MIN_UNREADABLE_SHARE = 0.5
_MAX_DAMAGED_SHARE = 0.05
_MIN_ZERO_SHARE = 0.05
_MIN_PRINTABLE_SHARE = 0.95


class ByteKind(StrEnum):
    """Content type by the bytes."""

    HTML = "html"
    PDF = "pdf"
    IMAGE = "image"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Page content of a document that is not a web page. ``missing_parts``: what is missing, or empty."""

    kind: PageKind
    text: str
    hidden_text: str = ""
    screenshots: tuple[bytes, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    title: str = ""
    pdf: bytes | None = None
    places: bytes | None = None
    missing_parts: str = ""

    def complete_observation(self, received: Observation) -> Observation:
        """Return ``received`` completed with the content of the document."""
        return replace(
            received,
            outcome=CaptureOutcome.PARTIAL if self.missing_parts else CaptureOutcome.OK,
            detail=self.missing_parts,
            kind=self.kind,
            title=self.title,
            text=self.text,
            hidden_text=self.hidden_text,
            screenshots=self.screenshots,
            links=self.links,
            pdf=self.pdf,
            places=self.places,
        )


def is_html_type(content_type: str) -> bool:
    return _media_type(content_type) in _HTML_TYPES


def sniff(data: bytes, content_type: str) -> ByteKind:
    """Return the type of content: by its signature first, then by the server's content type, never by the URL.

    >>> sniff(b"%PDF-1.7 ...", "text/html")
    <ByteKind.PDF: 'pdf'>
    >>> sniff(b"<!doctype html><p>x", "application/pdf")
    <ByteKind.HTML: 'html'>
    """
    head = data[:SNIFFED_BYTES]
    media_type = _media_type(content_type)
    declared_text = _TEXT_TYPES.match(media_type) is not None
    if _is_pdf(head, declared_text=declared_text):
        return ByteKind.PDF
    if _is_image(head) and not (declared_text and _looks_like_text(head)):
        return ByteKind.IMAGE
    if media_type in _HTML_TYPES:
        return ByteKind.HTML
    if _HTML_START.match(head) and media_type != "text/plain":
        return ByteKind.HTML
    if (declared_text and not _is_binary(head, content_type)) or _looks_like_text(head):
        return ByteKind.TEXT
    return ByteKind.OTHER


def byte_limit(head: bytes, content_type: str) -> int:
    """Return the maximum content size in bytes for the type that the first bytes indicate."""
    return MAX_DOCUMENT_BYTES if sniff(head, content_type) in (ByteKind.PDF, ByteKind.IMAGE) else MAX_PAGE_BYTES


async def read_document(data: bytes, content_type: str, *, deadline_s: float) -> Document:
    """Convert a PDF, an image or plain text to a page. PDFs and images are decoded in a child process.

    Raises:
        DocumentRejected: damaged, encrypted, a decompression bomb, blank, or of an unsupported type (including HTML).
    """
    kind = sniff(data, content_type)
    if kind is ByteKind.PDF:
        output = await decode_in_child("pdf", data, deadline_s=deadline_s)
        return document_from_output(PageKind.PDF, output, pdf=data)
    if kind is ByteKind.IMAGE:
        return document_from_output(
            PageKind.IMAGE, await decode_in_child("image", data, deadline_s=deadline_s), pdf=None
        )
    if kind is ByteKind.TEXT:
        return await asyncio.to_thread(lambda: _document_from_text(decode_text(data, content_type)))
    if not data.strip():
        raise DocumentRejected(CaptureOutcome.EMPTY, "no content")
    raise DocumentRejected(
        CaptureOutcome.UNSUPPORTED, f"unsupported content type {_media_type(content_type) or 'unknown'}"
    )


def decode_text(data: bytes, content_type: str) -> str:
    """Decode text by byte order mark, server's charset, UTF-8, or the detected charset, in this order."""
    return _decode(data, [_charset(content_type)])


def decode_html(data: bytes, content_type: str) -> str:
    """Decode HTML like ``decode_text``, with the charset that it declares itself after the server's."""
    return _decode(data, [_charset(content_type), _charset(f"charset={html_body_declared_encoding(data)}")])


def utf_16_codec(data: bytes) -> str | None:
    """Return the codec of text in UTF-16, by its byte order mark or its zero bytes; None if it is not UTF-16.

    Without a mark, zero bytes must be only the first or only the second bytes of the characters. Those of ASCII
    characters, such as spaces and digits, are. The text must also be printable, which other binary data is not.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    head = data[:SNIFFED_BYTES]
    for codec, zeros, others in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if 0 not in others and zeros.count(0) > _MIN_ZERO_SHARE * len(zeros):
            text = head.decode(codec, errors="replace")
            printable = sum(character.isprintable() or character.isspace() for character in text)
            return codec if printable >= _MIN_PRINTABLE_SHARE * len(text) else None
    return None


def _decode(data: bytes, named: Sequence[str | None]) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return data.decode("utf-8-sig", errors="replace")
    wide = utf_16_codec(data)
    if wide is not None:
        return data.decode(wide, errors="replace")
    for encoding in (*filter(None, named), "utf-8"):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    detected = _detected_charset(data)
    if detected is not None:
        return data.decode(detected, errors="replace")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _detected_charset(data: bytes) -> str | None:
    """Return the charset of undeclared text that is not valid UTF-8; None for Windows-1252, and for a few bytes.

    Another charset is considered only if most letters that are not ASCII would be words of accented letters only, or
    for several bytes per character, if more bytes are not ASCII than in languages in Latin letters. A few accented
    letters fit all charsets.
    """
    first = _UPPER_HALF.search(data)
    sample = data[first.start() :][:_DETECTION_SAMPLE_BYTES] if first else b""
    if len(sample) == _DETECTION_SAMPLE_BYTES:  # do not cut a character
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    upper = _UPPER_HALF.findall(sample)
    if len(upper) < _MIN_DETECTION_BYTES:
        return None
    if sample.decode("utf-8", errors="replace").count("\ufffd") < _MAX_DAMAGED_SHARE * len(upper):
        return "utf-8"  # damaged at a few places
    unreadable = unreadable_chars(sample.decode("cp1252", errors="replace"))
    if unreadable >= _MIN_UNREADABLE_SHARE * len(upper):
        possible = [*_ONE_BYTE_CHARSETS, *_MULTI_BYTE_CHARSETS, *_WESTERN_CHARSETS]
    elif len(upper) > _MAX_WESTERN_SHARE * sum(map(len, sample.split())):
        possible = [*_MULTI_BYTE_CHARSETS, *_WESTERN_CHARSETS]
    else:
        return None
    match = charset_normalizer.from_bytes(sample, cp_isolation=possible).best()
    if match is None or match.encoding in _WESTERN_CHARSETS or unreadable_chars(str(match)) > unreadable:
        return None
    return match.encoding


def _charset(content_type: str) -> str | None:
    """Return the codec for the declared charset, if there is one."""
    declared_charset = _CHARSET.search(content_type)
    try:
        name = codecs.lookup(declared_charset[1]).name if declared_charset else None
    except LookupError:
        return None
    if name is None or name.replace("-", "_") in _EXCLUDED_CODECS:
        return None
    return "cp1252" if name in _NAMES_OF_CP1252 else name


def _document_from_text(text: str) -> Document:
    if not text.strip():
        raise DocumentRejected(CaptureOutcome.EMPTY, "the text is blank")
    if garbled := garbled_reason(text[:MAX_TEXT_CHARS]):
        raise DocumentRejected(CaptureOutcome.DAMAGED, garbled)
    missing = (
        f"only the first {MAX_TEXT_CHARS} of {len(text)} characters are stored" if len(text) > MAX_TEXT_CHARS else ""
    )
    return Document(kind=PageKind.TEXT, text=text[:MAX_TEXT_CHARS], missing_parts=missing)


def document_from_output(kind: PageKind, output: ChildOutput, *, pdf: bytes | None) -> Document:
    """Convert the frames of the child to a document. ``missing_parts`` says what is missing.

    Raises:
        DocumentRejected: there is no usable content.
    """
    headers = [frame.header for frame in output.frames]
    reason = next((str(header["reason"]) for header in headers if header["type"] == "rejected"), "")
    pages = [frame for frame in output.frames if frame.header["type"] == "page"]
    if not pages:
        raise DocumentRejected(
            CaptureOutcome.DAMAGED, reason or f"bomb or damage: decoding stopped by {output.stop_reason}"
        )
    damage = [str(page.header["damage"]) for page in pages if page.header.get("damage")]
    if len(damage) == len(pages):
        raise DocumentRejected(CaptureOutcome.DAMAGED, f"no page of it can be read: {damage[0][:200]}")
    if all(page.header.get("blank") for page in pages):
        raise DocumentRejected(CaptureOutcome.EMPTY, "all its pages are blank")
    document = next(header for header in headers if header["type"] == "document")
    text = "\n".join(str(page.header["text"]) for page in pages)
    hidden = "\n".join(str(page.header["hidden"]) for page in pages if page.header["hidden"])
    notes = _missing_pages_note(int(document["pages"]) - len(pages), reason or output.stop_reason)
    unseen = sum(not (page.body or page.header["text"] or page.header.get("blank")) for page in pages) - len(damage)
    notes += [f"{unseen} pages have no text, and their pictures are not shown"] if unseen > 0 else []
    notes += [f"{len(damage)} pages cannot be read: {damage[0][:200]}"] if damage else []
    notes += ["the file is damaged; its readable parts are shown"] if {"type": "repaired"} in headers else []
    notes += [f"only the first {MAX_TEXT_CHARS} characters are stored"] if len(text) > MAX_TEXT_CHARS else []
    text = text[:MAX_TEXT_CHARS]
    return Document(
        kind=kind,
        text=text,
        hidden_text=hidden[:MAX_TEXT_CHARS],
        screenshots=tuple(page.body for page in pages if page.body),
        links=tuple((str(label), str(target)) for page in pages for label, target in page.header["links"]),
        title=str(document["title"]),
        pdf=pdf,
        places=places_json(text, _screenshot_pieces([page for page in pages if page.body])),
        missing_parts="; ".join(notes),
    )


def _missing_pages_note(pages: int, reason: str) -> list[str]:
    return [f"{pages} pages left out: {reason or 'only the first ones are read'}"] if pages > 0 else []


def _screenshot_pieces(pages: Sequence[Frame]) -> Iterator[tuple[list[ScreenshotArea], list[Piece]]]:
    """Return each rendered page with its lines. The child process reports boxes in fractions of the page."""
    for number, page in enumerate(pages):
        pieces = [
            Piece(beginning=text[:_BEGINNING_CHARS], length=len(text), lines=(Line(0, *map(float, box)),))
            for text, *box in page.header.get("lines", ())
        ]
        yield [ScreenshotArea(number=number, top=0.0, width=1.0, height=1.0)], pieces


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _is_pdf(head: bytes, *, declared_text: bool) -> bool:
    at = head.find(b"%PDF-")
    if at < 0 or _HTML_START.match(head):
        return False
    # A text about the PDF format contains the signature, but no object after it.
    return not declared_text or not head[:at].strip(b"\xef\xbb\xbf\0\t\n\f\r ") or b" obj" in head[at:]


def _is_image(head: bytes) -> bool:
    is_bitmap = head[:2] == b"BM" and head[6:10] == bytes(4)
    return is_bitmap or head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _is_binary(head: bytes, content_type: str) -> bool:
    """Return whether declared text is binary, because servers declare unknown content as text."""
    is_wide = utf_16_codec(head) is not None or (_charset(content_type) or "")[:5] in _WIDE_CODECS
    return b"\0" in head and not is_wide


def _looks_like_text(head: bytes) -> bool:
    if not head or _CONTROLS.search(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as broken:
        return broken.start > len(head) - 4 and broken.reason == "unexpected end of data"
    return True
