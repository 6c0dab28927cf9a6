"""PDFs and pictures of the corpus: visible paragraphs, and a payload hidden in different ways."""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

MARGIN = 60
CUT_PX = 10_000
"""Height at which pictures are cut (``cache.backends.document_child``)."""


def pdf_of(paragraphs: Sequence[str]) -> bytes:
    """Return a PDF page with these paragraphs."""
    document, page = _sheet(paragraphs)
    del page
    return bytes(document.tobytes())


def pdf_with_secret(paragraphs: Sequence[str], payload: str, drawn: str) -> bytes:
    """Return the same page with a payload that is invisible on paper."""
    document, page = _sheet(paragraphs)
    _SECRETS[drawn](document, page, payload)
    return bytes(document.tobytes())


def pdf_with_picture(paragraphs: Sequence[str], picture: bytes) -> bytes:
    """Return the same page with a picture below the paragraphs."""
    document, page = _sheet(paragraphs)
    page.insert_image(_pymupdf().Rect(MARGIN, 500, 535, 780), stream=picture)
    return bytes(document.tobytes())


def _pymupdf() -> Any:
    return importlib.import_module("pymupdf")


def _sheet(paragraphs: Sequence[str]) -> tuple[Any, Any]:
    document = _pymupdf().open()
    page = document.new_page(width=595, height=842)
    top = float(MARGIN)
    for paragraph in paragraphs:
        lines = _wrapped(paragraph)
        page.insert_text((MARGIN, top), lines, fontsize=10)
        top += 13 * len(lines) + 14
    return document, page


def _wrapped(paragraph: str, width: int = 88) -> list[str]:
    lines: list[str] = []
    for written in paragraph.split("\n"):
        line = ""
        for word in written.split(" "):
            if line and len(line) + len(word) >= width:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        lines.append(line)
    return lines


def _render_mode_3(document: Any, page: Any, payload: str) -> None:
    page.insert_text((MARGIN, 600), payload, fontsize=10, render_mode=3)


def _white(document: Any, page: Any, payload: str) -> None:
    page.insert_text((MARGIN, 600), payload, fontsize=10, color=(1, 1, 1))


def _tiny(document: Any, page: Any, payload: str) -> None:
    page.insert_text((MARGIN, 600), payload, fontsize=0.5)


def _off_page(document: Any, page: Any, payload: str) -> None:
    page.insert_text((700, 600), payload, fontsize=10)


def _layer_off(document: Any, page: Any, payload: str) -> None:
    layer = document.add_ocg("notes", on=False)
    page.insert_text((MARGIN, 600), payload, fontsize=10, oc=layer)


def _annotation(document: Any, page: Any, payload: str) -> None:
    page.add_text_annot((MARGIN, 600), payload)
    document.set_metadata({"title": payload, "subject": payload, "keywords": payload, "author": payload})
    document.embfile_add("note.txt", payload.encode())


def _under_scan(document: Any, page: Any, payload: str) -> None:
    """Draw a scan with a text layer, as a scanner writes it, whose text differs from the picture."""
    scan = Image.new("RGB", (1240, 1754), "white")
    ImageDraw.Draw(scan).text((130, 1240), "Left blank by the printer, for notes.", fill="black", font=_font(30))
    buffer = io.BytesIO()
    scan.save(buffer, "PNG")
    page.insert_image(page.rect, stream=buffer.getvalue(), overlay=False)
    page.insert_text((MARGIN, 606), payload, fontsize=14, render_mode=3)


_SECRETS: dict[str, Callable[[Any, Any, str], None]] = {
    "render_mode_3": _render_mode_3,
    "white": _white,
    "tiny": _tiny,
    "off_page": _off_page,
    "layer_off": _layer_off,
    "annotation": _annotation,
    "under_scan": _under_scan,
}


def picture_of(payload: str, drawn: str) -> bytes:
    """Return a PNG that shows the payload."""
    picture = Image.new("RGB", (900, 500), "white")
    _DRAWINGS[drawn](ImageDraw.Draw(picture), payload)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def tall_picture_of(lines: Sequence[str], payload: str) -> bytes:
    """Return a PNG with a payload below the point where pictures are cut."""
    picture = Image.new("RGB", (900, CUT_PX + 400), "white")
    pen = ImageDraw.Draw(picture)
    pen.multiline_text((40, 40), "\n".join(lines), fill="black", font=_font(22))
    pen.text((40, CUT_PX + 200), payload, fill="black", font=_font(22))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def _text(pen: ImageDraw.ImageDraw, payload: str) -> None:
    pen.text((40, 200), payload, fill="black", font=_font(24))


def _faint(pen: ImageDraw.ImageDraw, payload: str) -> None:
    pen.text((40, 200), payload, fill=(249, 249, 249), font=_font(24))


def _verdict_card(pen: ImageDraw.ImageDraw, payload: str) -> None:
    pen.rectangle((30, 150, 870, 350), outline="green", width=6)
    pen.text((50, 170), "VERIFIED", fill="green", font=_font(40))
    pen.text((50, 260), payload, fill="black", font=_font(24))


def _machine_code(pen: ImageDraw.ImageDraw, payload: str) -> None:
    """Draw black and white squares that resemble a QR code."""
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(payload.encode()).digest() * 4)
    for place, bit in enumerate(bits[: 29 * 29]):
        left, top = 40 + 12 * (place % 29), 40 + 12 * (place // 29)
        pen.rectangle((left, top, left + 11, top + 11), fill="black" if bit == "1" else "white")


_DRAWINGS: dict[str, Callable[[ImageDraw.ImageDraw, str], None]] = {
    "text": _text,
    "faint": _faint,
    "verdict_card": _verdict_card,
    "machine_code": _machine_code,
}


def _font(size: int) -> Any:
    return ImageFont.load_default(size)
