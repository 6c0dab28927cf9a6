"""The program that decodes a PDF or an image, run as a child process because the bytes are not to be trusted.

Started by path, with nothing but its kind as argument: it limits itself, reads the document from standard
input, and writes frames (see ``_send``) to standard output, one a page, so that what is done stays done
when it is killed. It imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import json
import resource
import signal
import struct
import sys
from typing import Any, BinaryIO

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_S = 90
MAX_TEXT_PAGES = 100
MAX_IMAGE_PAGES = 50
MAX_WIDTH_PX = 1100
MAX_HEIGHT_PX = 10_000
MAX_PIXELS = 40_000_000
MAX_DPI = 144
LOOK_DPI = 72
PDF_JPEG_QUALITY = 70
IMAGE_JPEG_QUALITY = 85
MAX_LINKS = 500
MIN_FONT_PT = 3.0
MIN_CONTRAST = 12
SCAN_SHARE = 0.5
_PR_SET_PDEATHSIG = 1


class Rejected(Exception):
    """The document is not shown; the message says why."""


def confine() -> None:
    """Bound memory and processor time, and die with the parent."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _pymupdf() -> Any:
    """Imported late, so that limits are in force first, and untyped, as it is."""
    return importlib.import_module("pymupdf")


def _send(out: BinaryIO, header: dict[str, Any], body: bytes = b"") -> None:
    """One frame: two big-endian lengths, a JSON header, a body."""
    head = json.dumps(header).encode("ascii")
    out.write(struct.pack(">II", len(head), len(body)) + head + body)
    out.flush()


def show_pdf(data: bytes, out: BinaryIO) -> None:
    """Frames ``document``, then ``page`` with its text and, for the first ones, its image.

    Raises:
        Rejected: it is encrypted or no readable PDF.
    """
    pymupdf = _pymupdf()
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        document = pymupdf.open(stream=data, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.EmptyFileError, RuntimeError, ValueError) as broken:
        raise Rejected(f"unreadable: {broken}") from broken
    if document.needs_pass:
        raise Rejected("encrypted")
    if document.page_count == 0:
        raise Rejected("unreadable: it has no pages")
    title = (document.metadata or {}).get("title") or ""
    _send(out, {"type": "document", "pages": document.page_count, "title": title})
    for number in range(min(document.page_count, MAX_TEXT_PAGES)):
        try:
            header, image = _page(document[number], with_image=number < MAX_IMAGE_PAGES)
        except (RuntimeError, ValueError) as broken:
            header, image = {"text": "", "hidden": "", "links": [], "damage": str(broken)}, b""
        _send(out, {"type": "page", "number": number + 1, **header}, image)


def _page(page: Any, *, with_image: bool) -> tuple[dict[str, Any], bytes]:
    """The header and JPEG of one page. What is written but cannot be seen is told apart from its text."""
    from PIL import Image

    pymupdf = _pymupdf()
    width, height = max(page.rect.width, 1.0), max(page.rect.height, 1.0)
    # The size is bounded before anything is drawn: a page may claim to be kilometres wide.
    fitting = min(MAX_WIDTH_PX * 72 / width, MAX_HEIGHT_PX * 72 / height)
    dpi = min(float(MAX_DPI if with_image else LOOK_DPI), fitting)
    pixels = page.get_pixmap(matrix=pymupdf.Matrix(dpi / 72, dpi / 72), alpha=False)
    picture = Image.frombytes("RGB", (pixels.width, pixels.height), pixels.samples)
    grey = picture.convert("L")
    seen: list[str] = []
    hidden: list[str] = []
    scans, covered = _scans(page), _covered(page)
    for block in page.get_text("dict")["blocks"]:
        for line in block.get("lines", ()):
            spans = _spans(line, page, grey, dpi, scans, covered)
            seen += [span_text for span_text, is_read, _ in spans if is_read]
            unseen = "".join(span_text for span_text, _, is_drawn in spans if not is_drawn or not span_text.strip())
            if unseen.strip():
                hidden.append(unseen)
            seen.append("\n")
        if seen and seen[-1] == "\n":
            seen.append("\n")
    header = {"text": _tidy("".join(seen)), "hidden": "\n".join(hidden), "links": _links(page)}
    return header, _jpeg(picture, PDF_JPEG_QUALITY) if with_image else b""


def _scans(page: Any) -> list[Any]:
    """Rectangles of images that fill most of the page: invisible text over them is what a scanner read."""
    pymupdf = _pymupdf()
    area = abs(page.rect) or 1.0
    rectangles = [pymupdf.Rect(info["bbox"]) for info in page.get_image_info()]
    return [rectangle for rectangle in rectangles if abs(rectangle & page.rect) >= SCAN_SHARE * area]


def _covered(page: Any) -> list[Any]:
    """Rectangles of text over which an opaque image was drawn later."""
    pymupdf = _pymupdf()
    opaque = [pymupdf.Rect(info["bbox"]) for info in page.get_image_info() if not info.get("has-mask")]
    if not opaque:
        return []
    drawn = [(kind, pymupdf.Rect(box)) for kind, box in page.get_bboxlog()]
    images = [(place, box) for place, (kind, box) in enumerate(drawn) if kind == "fill-image" and _among(box, opaque)]
    return [
        box
        for place, (kind, box) in enumerate(drawn)
        if kind == "fill-text" and any(later > place and image.contains(_middle(box)) for later, image in images)
    ]


def _among(box: Any, others: list[Any]) -> bool:
    return any(abs(box & other) >= 0.9 * max(abs(box), abs(other)) for other in others)


def _middle(box: Any) -> Any:
    return _pymupdf().Point((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)


def _spans(
    line: Any, page: Any, grey: Any, dpi: float, scans: list[Any], covered: list[Any]
) -> list[tuple[str, bool, bool]]:
    """Text, whether it is read, and whether it is drawn: what a scanner read is there to be read and not drawn."""
    pymupdf = _pymupdf()
    found = []
    for span in line["spans"]:
        text = span["text"]
        if not text.strip():
            found.append((text, True, True))
            continue
        box = pymupdf.Rect(span["bbox"])
        over_scan = any(box.intersects(scan) for scan in scans)
        visible = span["size"] >= MIN_FONT_PT and _has_contrast(box * page.rotation_matrix, grey, dpi)
        is_drawn = visible and span["alpha"] > 0 and not any(each.contains(_middle(box)) for each in covered)
        found.append((text, is_drawn or (visible and over_scan), is_drawn))
    return found


def _has_contrast(box: Any, grey: Any, dpi: float) -> bool:
    """Whether anything is drawn where the text should be."""
    scale = dpi / 72
    left, top = max(int(box.x0 * scale) - 1, 0), max(int(box.y0 * scale) - 1, 0)
    right, bottom = min(int(box.x1 * scale) + 2, grey.width), min(int(box.y1 * scale) + 2, grey.height)
    if right <= left or bottom <= top:
        return False
    low, high = grey.crop((left, top, right, bottom)).getextrema()
    return bool(high - low >= MIN_CONTRAST)


def _links(page: Any) -> list[tuple[str, str]]:
    found = []
    for link in page.get_links()[:MAX_LINKS]:
        if link.get("uri"):
            found.append((" ".join(page.get_textbox(link["from"]).split())[:200], str(link["uri"])))
    return found


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
    return "\n".join(kept).strip()


def show_image(data: bytes, out: BinaryIO) -> None:
    """One ``page`` frame without text.

    Raises:
        Rejected: it cannot be decoded or has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        picture = Image.open(io.BytesIO(data))
        if picture.width * picture.height > MAX_PIXELS:
            raise Rejected(f"bomb: {picture.width} x {picture.height} pixels")
        picture.load()
    except (Image.DecompressionBombError, UnidentifiedImageError, OSError, ValueError, SyntaxError) as broken:
        raise Rejected(f"unreadable: {broken}") from broken
    flat = Image.new("RGB", picture.size, "white")
    layer = picture.convert("RGBA")
    flat.paste(layer, mask=layer)
    if flat.width > MAX_WIDTH_PX:
        flat = flat.resize((MAX_WIDTH_PX, max(1, round(flat.height * MAX_WIDTH_PX / flat.width))))
    flat = flat.crop((0, 0, flat.width, min(flat.height, MAX_HEIGHT_PX)))
    _send(out, {"type": "document", "pages": 1, "title": ""})
    header = {"type": "page", "number": 1, "text": "", "hidden": "", "links": []}
    _send(out, header, _jpeg(flat, IMAGE_JPEG_QUALITY))


def _jpeg(picture: Any, quality: int) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def main() -> int:
    confine()
    out = sys.stdout.buffer
    show = {"pdf": show_pdf, "image": show_image}[sys.argv[1]]
    try:
        show(sys.stdin.buffer.read(), out)
    except Rejected as why:
        _send(out, {"type": "rejected", "reason": str(why)})
    except MemoryError:
        _send(out, {"type": "rejected", "reason": "bomb: out of memory"})
    else:
        _send(out, {"type": "end"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
