"""Documents for tests: PDFs with visible and hidden text, damaged files, decompression bombs, images."""

from __future__ import annotations

import importlib
import io
import struct
import zlib
from typing import Any

from PIL import Image, ImageDraw


def pdf_with_pages(count: int, *, width: float = 595, height: float = 842, password: str = "") -> bytes:
    """Return a PDF whose pages show their number, each with hidden text: white, invisible, tiny, off the page."""
    pymupdf: Any = importlib.import_module("pymupdf")
    document = pymupdf.open()
    for number in range(1, count + 1):
        page = document.new_page(width=width, height=height)
        page.insert_text((72, 72), f"Page number {number} is visible", fontsize=14)
        page.insert_text((72, 200), "whitewords", color=(1, 1, 1))
        page.insert_text((72, 300), "invisiblewords", render_mode=3)
        page.insert_text((72, 400), "tinywords", fontsize=0.5)
        page.insert_text((width + 100, 400), "offpagewords")
        link = {"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(72, 58, 260, 76), "uri": "https://example.org/source"}
        page.insert_link(link)
    if password:
        encryption = pymupdf.PDF_ENCRYPT_AES_256
        return bytes(document.tobytes(encryption=encryption, user_pw=password, owner_pw=password))
    return bytes(document.tobytes())


def pdf_without_contents() -> bytes:
    """Return a PDF of two pages that refer to missing contents."""
    pymupdf: Any = importlib.import_module("pymupdf")
    document = pymupdf.open(stream=pdf_with_pages(2))
    for page in document:
        document.xref_set_key(page.xref, "Contents", "99 0 R")
    return bytes(document.tobytes())


def pdf_with_a_layer_switched_off(shown: str, hidden: str) -> bytes:
    """Return a PDF with text on a disabled layer, text on no layer, and text in a closed note."""
    pymupdf: Any = importlib.import_module("pymupdf")
    document = pymupdf.open()
    page = document.new_page()
    layer = document.add_ocg("draft", on=False)
    page.insert_text((72, 100), shown, fontsize=14)
    page.insert_text((72, 200), hidden, fontsize=14, oc=layer)
    page.add_text_annot((300, 300), f"note {hidden}")
    document.set_metadata({"title": "A title", "keywords": hidden})
    document.embfile_add("attached.txt", hidden.encode())
    return bytes(document.tobytes())


def pdf_of_many_pages(count: int) -> bytes:
    """Return a small file that claims very many pages, all the same object."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b"3 0 R " * count),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length 44>>stream\nBT /F 12 Tf 20 100 Td (The same page) Tj ET  \nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    numbered = b"".join(b"%d 0 obj\n%s\nendobj\n" % (place, made) for place, made in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + numbered + b"trailer<</Root 1 0 R>>"


def pdf_of_a_scan(layer: str, *, covered: str = "") -> bytes:
    """Return a PDF of one picture with text, an invisible text layer, and text that the picture covers."""
    pymupdf: Any = importlib.import_module("pymupdf")
    scan = Image.new("RGB", (1240, 1754), "white")
    ImageDraw.Draw(scan).text((130, 1240), "What the paper says, drawn as a picture.", fill="black", font_size=30)
    buffer = io.BytesIO()
    scan.save(buffer, "PNG")
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    if covered:
        page.insert_text((62, 606), covered, fontsize=14)
    page.insert_image(page.rect, stream=buffer.getvalue())
    page.insert_text((62, 606), layer, fontsize=14, render_mode=3)
    return bytes(document.tobytes())


def pdf_of_nested_forms(depth: int = 30, fan: int = 10) -> bytes:
    """Return a few kilobytes that take fan ** depth drawing steps."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>",
        b"<</Length 5>>stream\n/F Do\nendstream",
    ]
    for level in range(depth):
        body = b"/F Do " * fan if level < depth - 1 else b"0 0 9 9 re f"
        inner = b"<</XObject<</F %d 0 R>>>>" % (6 + level) if level < depth - 1 else b"<<>>"
        objects.append(
            b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources%s/Length %d>>stream\n%s\nendstream"
            % (inner, len(body), body)
        )
    numbered = b"".join(b"%d 0 obj\n%s\nendobj\n" % (place, made) for place, made in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + numbered + b"trailer<</Root 1 0 R>>"


def image_bytes(width: int, height: int, *, mode: str = "RGB", kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (width, height)).save(buffer, kind)
    return buffer.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """Return a PNG whose header claims a size and whose pixels are missing."""
    png = image_bytes(1, 1, mode="L")
    header = png[12:16] + struct.pack(">II", width, height) + png[24:29]
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


def image_size(jpeg: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(jpeg)).size
