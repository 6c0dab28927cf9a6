"""Child process that decodes PDFs, images and HTML, because their bytes are untrusted.

The first process is started by path. It imports the decoders, which takes a second, and forks a child per document in
milliseconds. A child limits its resources, confines itself, reads the document from standard input, and writes one
frame per page to standard output (see ``_send``), so that finished pages survive if it is killed. Of this project it
loads only ``plain_html`` and ``report_markdown``, by their paths, and ``cache.confinement``.

Arguments: the folder that contains the package ``cache``, and the user of the children (empty: unchanged).

Control messages arrive on a socket, the standard input of the first process. A key of ``_WRITERS`` comes with two file
descriptors, for the document and for the frames; the response is the process id of the child. ``kill <id>``
kills a child. When the socket closes, all children are killed and the process exits.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import io
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_S = 90
HTML_PARSE_CPU_S = 0.5
HTML_PARSE_CPU_S_PER_MIB = 0.25
HTML_CPU_S = 1.0
HTML_CPU_S_PER_MIB = 1.0
REPORT_CPU_S = 30.0
PDF_END_BYTES = 2048
MAX_TEXT_PAGES = 2000
MAX_IMAGE_PAGES = 50
MAX_WIDTH_PX = 1100
MAX_HEIGHT_PX = 10_000
MAX_PIXELS = 40_000_000
MAX_DPI = 144
TEXT_ONLY_DPI = 72
PDF_JPEG_QUALITY = 70
IMAGE_JPEG_QUALITY = 85
MAX_LINKS = 500
MAX_PLACES = 1000
MIN_FONT_PT = 3.0
MIN_CONTRAST = 12
SCAN_SHARE = 0.5
_SYSTEM_FILES = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime")


class Rejected(Exception):
    """The document is rejected. The message contains the reason."""


def apply_limits() -> None:
    """Limit memory and CPU time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def confine() -> None:
    """Give up files, sockets, new processes, capabilities and, as root, the user. Python's own files stay readable."""
    packages, uid = sys.argv[1:]
    confinement = _confinement(packages)
    separated = confinement["landlock"].restrict_files(
        readable=[sys.prefix, sys.base_prefix, f"/proc/{os.getpid()}", *_SYSTEM_FILES],
        writable=["/dev/null", "/dev/zero", "/dev/urandom"],
    )
    privileges = confinement["privileges"]
    keep_reading = separated and privileges.can_read_everything()
    server = os.getppid()
    privileges.drop_privileges(int(uid) if uid else None, keep_reading=keep_reading)
    privileges.exit_with_parent(server)
    confinement["seccomp"].refuse_system_calls(processes=False, network=False)


@functools.cache
def _confinement(packages: str) -> dict[str, Any]:
    sys.path.append(packages)
    names = ("landlock", "privileges", "seccomp")
    return {name: importlib.import_module(f"cache.confinement.{name}") for name in names}


def _pymupdf() -> Any:
    """Return the module without its types, which are incomplete."""
    return importlib.import_module("pymupdf")


def _send(out: BinaryIO, header: dict[str, Any], body: bytes = b"") -> None:
    """Write one frame: two big-endian lengths, a JSON header and a body."""
    head = json.dumps(header).encode("ascii")
    out.write(struct.pack(">II", len(head), len(body)) + head + body)
    out.flush()


def write_pdf(data: bytes, out: BinaryIO) -> None:
    """Write a ``document`` frame, then a ``page`` frame with text per page. The first pages include an image.

    Raises:
        Rejected: encrypted, or not a readable PDF.
    """
    document = _open_pdf(data)
    pages = int(document.page_count)
    title = (document.metadata or {}).get("title") or ""
    _send(out, {"type": "document", "pages": pages, "title": title})
    for number in range(min(pages, MAX_TEXT_PAGES)):
        try:
            header, image = _read_page(document[number], with_image=number < MAX_IMAGE_PAGES)
        except (RuntimeError, ValueError) as broken:
            header, image = {"text": "", "hidden": "", "links": [], "damage": str(broken) or "unknown"}, b""
        _send(out, {"type": "page", "number": number + 1, **header}, image)
    if document.is_repaired:
        _send(out, {"type": "repaired"})


def _open_pdf(data: bytes) -> Any:
    """Open a PDF with PyMuPDF. Raises Rejected as ``write_pdf``."""
    pymupdf = _pymupdf()
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        document = pymupdf.open(stream=data, filetype="pdf")
        if document.needs_pass:
            raise Rejected("encrypted")
        pages = int(document.page_count)
    except (pymupdf.FileDataError, pymupdf.EmptyFileError, RuntimeError, ValueError) as broken:
        raise Rejected(f"unreadable: {broken}") from broken
    if pages == 0:
        raise Rejected("unreadable: the PDF has no pages")
    return document


def _read_page(page: Any, *, with_image: bool) -> tuple[dict[str, Any], bytes]:
    """Return the header and JPEG of one page. Text that is not visible is returned separately."""
    from PIL import Image

    pymupdf = _pymupdf()
    # The library computes these properties on every access. Per line, that would take longer than rendering the page.
    page_rect, rotation, images = page.rect, page.rotation_matrix, page.get_image_info()
    width, height = max(page_rect.width, 1.0), max(page_rect.height, 1.0)
    # Limit the size before rendering, because a page can declare a size of kilometres.
    fitting = min(MAX_WIDTH_PX * 72 / width, MAX_HEIGHT_PX * 72 / height)
    dpi = min(float(MAX_DPI if with_image else TEXT_ONLY_DPI), fitting)
    pixels = page.get_pixmap(matrix=pymupdf.Matrix(dpi / 72, dpi / 72), alpha=False)
    picture = Image.new("RGB", (pixels.width, pixels.height), None)  # not cleared: every pixel is overwritten
    picture.frombytes(pixels.samples_mv)
    gray_image = picture.convert("L")
    visible_text: list[str] = []
    hidden: list[str] = []
    lines: list[tuple[Any, ...]] = []
    scans, covered = _scan_boxes(images, page_rect), _covered_text_boxes(images, page)
    words_only = pymupdf.TEXTFLAGS_DICT & ~pymupdf.TEXT_PRESERVE_IMAGES
    for block in page.get_text("dict", flags=words_only)["blocks"]:
        for line in block.get("lines", ()):
            spans = _read_spans(line, rotation, gray_image, dpi, scans, covered)
            visible_text += [span_text for span_text, is_read, _ in spans if is_read]
            if len(lines) < MAX_PLACES:
                lines.append(
                    (
                        "".join(text for text, is_read, _ in spans if is_read).strip(),
                        *_box(line, rotation, width, height),
                    )
                )
            unseen = "".join(span_text for span_text, _, is_drawn in spans if not is_drawn or not span_text.strip())
            if unseen.strip():
                hidden.append(unseen)
            visible_text.append("\n")
        if visible_text and visible_text[-1] == "\n":
            visible_text.append("\n")
    text, (low, high) = _collapse_blank_lines("".join(visible_text)), gray_image.getextrema()
    header = {"text": text, "blank": not text and low == high, "hidden": "\n".join(hidden), "links": _read_links(page)}
    return header | {"lines": lines if with_image else []}, _jpeg(picture, PDF_JPEG_QUALITY) if with_image else b""


def _box(line: Any, rotation: Any, width: float, height: float) -> tuple[float, ...]:
    """Return left, top, width and height of a line in fractions of the displayed page."""
    box = _pymupdf().Rect(line["bbox"]) * rotation
    return tuple(round(one, 5) for one in (box.x0 / width, box.y0 / height, box.width / width, box.height / height))


def _scan_boxes(images: list[Any], page_rect: Any) -> list[Any]:
    """Return the boxes of images that fill most of the page. Invisible text over them is the OCR text of a scan."""
    pymupdf = _pymupdf()
    area = abs(page_rect) or 1.0
    rectangles = [pymupdf.Rect(info["bbox"]) for info in images]
    return [rectangle for rectangle in rectangles if abs(rectangle & page_rect) >= SCAN_SHARE * area]


def _covered_text_boxes(images: list[Any], page: Any) -> list[Any]:
    """Return the boxes of text that a later opaque image covers."""
    pymupdf = _pymupdf()
    opaque = [pymupdf.Rect(info["bbox"]) for info in images if not info.get("has-mask")]
    if not opaque:
        return []
    drawn = [(kind, pymupdf.Rect(box)) for kind, box in page.get_bboxlog()]
    covering = [
        (place, box) for place, (kind, box) in enumerate(drawn) if kind == "fill-image" and _matches_any(box, opaque)
    ]
    return [
        box
        for place, (kind, box) in enumerate(drawn)
        if kind == "fill-text" and any(later > place and image.contains(_center(box)) for later, image in covering)
    ]


def _matches_any(box: Any, others: list[Any]) -> bool:
    return any(abs(box & other) >= 0.9 * max(abs(box), abs(other)) for other in others)


def _center(box: Any) -> Any:
    return _pymupdf().Point((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)


def _read_spans(
    line: Any, rotation: Any, gray_image: Any, dpi: float, scans: list[Any], covered: list[Any]
) -> list[tuple[str, bool, bool]]:
    """Return text, whether it is readable, and whether it is visible. OCR text of a scan is only readable."""
    pymupdf = _pymupdf()
    spans = []
    for span in line["spans"]:
        text = span["text"]
        if not text.strip():
            spans.append((text, True, True))
            continue
        box = pymupdf.Rect(span["bbox"])
        over_scan = any(box.intersects(scan) for scan in scans)
        visible = span["size"] >= MIN_FONT_PT and _has_contrast(box * rotation, gray_image, dpi)
        is_drawn = visible and span["alpha"] > 0 and not any(each.contains(_center(box)) for each in covered)
        spans.append((text, is_drawn or (visible and over_scan), is_drawn))
    return spans


def _has_contrast(box: Any, gray_image: Any, dpi: float) -> bool:
    """Return whether anything is drawn in the box of the text."""
    scale = dpi / 72
    left, top = max(int(box.x0 * scale) - 1, 0), max(int(box.y0 * scale) - 1, 0)
    right, bottom = min(int(box.x1 * scale) + 2, gray_image.width), min(int(box.y1 * scale) + 2, gray_image.height)
    if right <= left or bottom <= top:
        return False
    low, high = gray_image.crop((left, top, right, bottom)).getextrema()
    return bool(high - low >= MIN_CONTRAST)


def _read_links(page: Any) -> list[tuple[str, str]]:
    links = []
    for link in page.get_links()[:MAX_LINKS]:
        if link.get("uri"):
            links.append((" ".join(page.get_textbox(link["from"]).split())[:200], str(link["uri"])))
    return links


def _collapse_blank_lines(text: str) -> str:
    lines = [line.rstrip() for line in text.split("\n")]
    collapsed = [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
    return "\n".join(collapsed).strip()


def write_image(data: bytes, out: BinaryIO) -> None:
    """Write one ``page`` frame without text.

    Raises:
        Rejected: not decodable, or too many pixels.
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


def write_html(data: bytes, out: BinaryIO) -> None:
    """Write one ``html`` frame whose body is a ``PlainPage`` as JSON. ``data``: JSON with ``html`` and ``base_url``."""
    document = json.loads(data)
    html = document["html"]
    mib = len(html.encode("utf-8", "surrogatepass")) / 2**20
    # The kernel ends the process after this CPU time. Only hostile HTML takes over 0.1 s per MiB to parse. The steps
    # after it are linear and take 0.3 to 0.9 s per MiB.
    signal.setitimer(signal.ITIMER_PROF, HTML_PARSE_CPU_S + HTML_PARSE_CPU_S_PER_MIB * mib)
    tree = _plain_html().parse(html)
    signal.setitimer(signal.ITIMER_PROF, HTML_CPU_S + HTML_CPU_S_PER_MIB * mib)
    page = _plain_html().page_of(tree, len(html), document["base_url"])
    _send(out, {"type": "html"}, json.dumps(dataclasses.asdict(page)).encode("ascii"))


def write_docx_report(data: bytes, out: BinaryIO) -> None:
    """Write one ``report`` frame whose body is the Markdown of a Word document in UTF-8. Raises Rejected."""
    _write_report(lambda module: module.docx_markdown(data), out)


def write_html_report(data: bytes, out: BinaryIO) -> None:
    """Like ``write_docx_report``, for HTML in UTF-8."""
    _write_report(lambda module: module.html_markdown(data.decode("utf-8", "replace")), out)


def write_pdf_report(data: bytes, out: BinaryIO) -> None:
    """Like ``write_docx_report``, for a PDF. A file without an end that had to be repaired is rejected."""
    document = _open_pdf(data)
    if document.is_repaired and b"%%EOF" not in data[-PDF_END_BYTES:]:
        raise Rejected("unreadable: it is truncated")
    _write_report(lambda module: module.pdf_markdown(document), out)


def _write_report(convert: Callable[[Any], str], out: BinaryIO) -> None:
    signal.setitimer(signal.ITIMER_PROF, REPORT_CPU_S)
    module = _report_markdown()
    try:
        text = convert(module)
    except module.Unreadable as why:
        raise Rejected(str(why)) from why
    _send(out, {"type": "report"}, text.encode("utf-8", "replace"))


def _plain_html() -> Any:
    return _sibling("plain_html")


def _report_markdown() -> Any:
    return _sibling("report_markdown")


@functools.cache
def _sibling(name: str) -> Any:
    """Return a module next to this one. The folder is not importable: some names hide standard modules."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")  # noqa: PTH100, PTH118, PTH120
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _jpeg(picture: Any, quality: int) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


_REPORT = "-report"
_WRITERS = {
    "pdf": write_pdf,
    "image": write_image,
    "html": write_html,
    "docx-report": write_docx_report,
    "html-report": write_html_report,
    "pdf-report": write_pdf_report,
}


def write_document(kind: str, data: bytes, out: BinaryIO) -> None:
    """Write all frames of one document. The last one is ``end`` or ``rejected``."""
    try:
        _WRITERS[kind](data, out)
    except Rejected as why:
        _send(out, {"type": "rejected", "reason": str(why)})
    except MemoryError:
        _send(out, {"type": "rejected", "reason": "bomb: out of memory"})
    else:
        _send(out, {"type": "end"})


def _run_child(kind: str, document: int, frames: int) -> None:
    """Run as the child and exit. Closes the control socket and all other descriptors of the server."""
    code = 1
    try:
        os.setsid()
        os.dup2(document, 0)
        os.dup2(frames, 1)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        apply_limits()
        confine()
        with open(0, "rb") as source, open(1, "wb") as out:
            write_document(kind, source.read(), out)
        code = 0
    finally:
        os._exit(code)


def serve(control: socket.socket) -> None:
    """Fork and kill children on request until the control socket is closed."""
    _import_decoders()
    children: set[int] = set()
    while True:
        # Reap ended children periodically, also without requests.
        readable, _, _ = select.select([control], [], [], 1.0 if children else None)
        children -= _reap(children)
        if not readable:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, 64, 2)
        if not message:
            break
        command, _, number = message.decode("ascii").partition(" ")
        if command == "kill":
            # Reaped children are removed from the set, so a reused process id is never killed.
            if int(number) in children:
                os.kill(int(number), signal.SIGKILL)
            continue
        if command.endswith(_REPORT):
            _report_markdown()  # before the fork, because a confined child cannot read it; captures do not need it
        pid = os.fork()
        if pid == 0:
            _run_child(command, *descriptors)
        children.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode("ascii"))
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _import_decoders() -> None:
    _confinement(sys.argv[1])
    _pymupdf()
    _plain_html()
    from PIL import Image

    Image.preinit()


def _reap(children: set[int]) -> set[int]:
    return {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}


if __name__ == "__main__":
    with socket.socket(fileno=0) as owner:
        serve(owner)
