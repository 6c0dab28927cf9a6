"""PDF tools for task scripts: text and page images of a PDF, and detection of PDF URLs.

Decoding runs in a child process with limits; fetching goes through the egress proxy.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from io import BytesIO
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from cache.backends.documents import ByteKind, sniff
from cache.capture import PageKind
from cache.errors import CacheError
from cache.urls import is_fetchable
from mind2web2.external_services import external_services
from mind2web2.tool_faults import lose_page, lose_tool, no_evidence, recorded_cancellation

__all__ = ["PDFParser", "is_pdf", "is_pdf_by_suffix", "make_blank_png_b64"]

PdfSource: TypeAlias = "str | Path | bytes | BytesIO"

DECODE_DEADLINE_S: Final = 60.0
ASK_DEADLINE_S: Final = 20.0
_BLANK_PNG_B64: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC"
_ARXIV_PDF = re.compile(r"^https?://(?:www\.)?arxiv\.org(/pdf/)", re.IGNORECASE)
_PDF_PATHS = ("/pdf/", "/pdfs/")
_PDF_PARAMETERS = frozenset({"format", "type", "filetype", "output", "contenttype", "download", "ext"})
_log = logging.getLogger(__name__)


class _NoPdfError(Exception):
    """There is no PDF to read. Never leaves this module."""


class PDFParser:
    """Reads PDFs of up to 100 pages."""

    async def extract(self, source: PdfSource) -> tuple[list[str], str]:
        """Return page images (base64 JPEG) and text of a PDF, given as URL, path or bytes.

        Never raises. Without a PDF, it returns one blank image and a text that starts with "PDF extraction failed".
        That pair is for scripts only and is never shown to a judge. What the script decides after a fault is not
        judged.
        """
        try:
            with recorded_cancellation("PDFParser"):
                data = await _bytes_of(source)
                if sniff(data, "") is not ByteKind.PDF:
                    raise _NoPdfError("the data is not a PDF")
                document = await external_services().read_document(
                    data, "application/pdf", deadline_s=DECODE_DEADLINE_S
                )
        except (_NoPdfError, CacheError, OSError, TypeError, ValueError) as error:
            if isinstance(error, CacheError):
                lose_page(error)
            elif isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                lose_tool(f"PDFParser: {error}")
            return [make_blank_png_b64()], f"PDF extraction failed: {error}"
        return [base64.b64encode(shot).decode("ascii") for shot in document.screenshots], document.text


async def is_pdf(url: str, logger: logging.Logger | None = None) -> bool:
    """Return whether a URL leads to a PDF, by its form or, if that is inconclusive, by the server's response.

    Never raises. Returns False for a page that cannot be fetched.
    """
    if not isinstance(url, str):
        return False
    if is_pdf_by_suffix(url):
        return True
    if not is_fetchable(url):
        return False
    try:
        seen = await external_services().fetch(url, deadline_s=ASK_DEADLINE_S)
    except (CacheError, OSError) as error:
        (logger or _log).warning("cannot tell whether %s is a PDF: %s", url, error)
        return False
    return seen.kind is PageKind.PDF and seen.is_evidence


def is_pdf_by_suffix(url: str) -> bool:
    """Return whether a URL has the form of a PDF URL.

    >>> is_pdf_by_suffix("https://arxiv.org/pdf/2301.00001"), is_pdf_by_suffix("https://a.com/x?format=pdf")
    (True, True)
    >>> is_pdf_by_suffix("https://a.com/pdf-guide.html")
    False
    """
    try:
        parts = urlsplit(url.strip().lower())
    except ValueError:
        return False
    if parts.path.rstrip("/").endswith(".pdf") or any(mark in f"{parts.path}/" for mark in _PDF_PATHS):
        return True
    query = parse_qsl(parts.query)
    return any(value.endswith(".pdf") or (name in _PDF_PARAMETERS and value == "pdf") for name, value in query)


def arxiv_mirror(url: str) -> str | None:
    """Return the address of an arXiv PDF on the mirror for programs; None if this is no arXiv PDF.

    >>> arxiv_mirror("https://arxiv.org/pdf/2301.00001v2")
    'https://export.arxiv.org/pdf/2301.00001v2'
    """
    mirrored, count = _ARXIV_PDF.subn(r"https://export.arxiv.org\1", url.strip())
    return mirrored if count else None


def make_blank_png_b64() -> str:
    """Return a PNG of one white pixel, in base64."""
    return _BLANK_PNG_B64


async def _bytes_of(source: PdfSource) -> bytes:
    if isinstance(source, bytes | bytearray):
        return bytes(source)
    if isinstance(source, BytesIO):
        return source.getvalue()
    if isinstance(source, str) and source.strip().lower().startswith(("http://", "https://")):
        seen = await external_services().fetch(source.strip())
        mirror = arxiv_mirror(source)
        if seen.pdf is None and mirror is not None:
            seen = await external_services().fetch(mirror)
        if seen.pdf is None:
            if not seen.is_evidence:
                lose_page(no_evidence(seen))
            raise _NoPdfError(
                f"{source} returned no PDF: {seen.outcome.value}{f', {seen.detail}' if seen.detail else ''}"
            )
        return seen.pdf
    return await asyncio.to_thread(_read_file, source)


def _read_file(path: str | Path) -> bytes:
    return Path(path).expanduser().read_bytes()
