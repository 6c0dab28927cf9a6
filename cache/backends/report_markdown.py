"""Conversion of reports in Word, HTML and PDF to Markdown, with their links and footnotes.

Runs in the child process of ``document_child``, because documents are untrusted. That process loads this module by its
path, so it imports nothing of this project.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote
from xml.parsers.expat import ExpatError

import html2text
import lxml.html
import mammoth
import pymupdf

MAX_XML_BYTES: Final = 64 * 1024 * 1024
"""Decompressed size of the XML in a Word document. Its pictures are not read."""
MAX_MEMBERS: Final = 10_000
MAX_PDF_PAGES: Final = 1_000
_ENCRYPTED: Final = 0x1

_NOTE_LABEL = re.compile(r"\W{0,3}(?:\d{1,4}|[a-z]|[ivx]{1,6}|[*\u2020\u2021\u00a7]{1,3})\W{0,3}", re.IGNORECASE)
_NOTE_NUMBER = re.compile(r"^(?:\[\d{1,4}\]|\d{1,4}\\?[.)]) (?=\S)")
_BACK_LABEL = re.compile(r"[\s\W]{0,6}|\W{0,3}\w{1,4}\W{0,3}")
_NOTE_TAGS: Final = frozenset({"li", "p", "div", "td", "dd", "aside", "section"})
_ITEM_INDENT = re.compile(r"^  (?=(?:  )*(?:[*+-]|\d+\.) )", re.MULTILINE)
"""Indentation that the library gives to all lists, which would nest a list below the one before it."""
_CODE_MARK = re.compile(r"^\[/?code\] ?", re.MULTILINE)
"""What the library writes around code."""
_DROPPED: Final = ("script", "style", "noscript", "template", "svg", "iframe", "head/title")

_LIST_ITEM = re.compile(r"(?:[\[(]?\d{1,3}[\].)]|[-\u2022\u25e6\u2013*]|[\u00b9\u00b2\u00b3\u2070-\u2079]+)\s")
_BULLET = re.compile(r"^[\u2022\u25e6\u25aa\u2023]\s+")
_SUPERSCRIPT_FLAG: Final = 1
_SMALL: Final = 0.88
"""Share of the largest size of a line below which digits are superscripts. The library marks none at its start."""
_OPEN_URL = re.compile(r"https?://\S*[-/_=&?%.]\Z")
_SUPERSCRIPT: Final = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_DIGITS = re.compile(r"\d{1,3}(?:[,\s]{1,2}\d{1,3})*")


_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    ExpatError,
    OSError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
)
"""What the parsers of zip and XML, and the library behind them, raise for damaged files."""


class Unreadable(Exception):
    """The document cannot be converted. The message is for people."""


def docx_markdown(data: bytes) -> str:
    """Convert a Word document. Its pictures and comments are left out.

    Raises:
        Unreadable: Not a Word document, damaged, encrypted or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise Unreadable(f"has more than {MAX_MEMBERS:,} parts")
            if any(member.flag_bits & _ENCRYPTED for member in members):
                raise Unreadable("is encrypted: remove the password")
            if not any(member.filename == "word/document.xml" for member in members):
                raise Unreadable("is a zip archive, but not a Word document (.docx)")
            if (
                sum(member.file_size for member in members if member.filename.endswith((".xml", ".rels")))
                > MAX_XML_BYTES
            ):
                raise Unreadable(f"decompresses to more than {MAX_XML_BYTES // 2**20} MiB of XML")
        no_image = mammoth.images.img_element(lambda image: {})
        html = mammoth.convert_to_html(io.BytesIO(data), convert_image=no_image, external_file_access=False).value
    except _DAMAGED as error:
        raise Unreadable(f"is damaged or truncated: {type(error).__name__}: {str(error)[:200]}") from error
    return html_markdown(html)


def html_markdown(html: str) -> str:
    """Convert HTML. In-page links to notes become footnotes (``[^1]``). Returns nothing if there is no text."""

    def rendered(part: str) -> str:
        converter = html2text.HTML2Text(bodywidth=0)
        converter.unicode_snob = converter.ignore_images = True
        # Indented code below a list would belong to the list.
        converter.mark_code = "code]" not in part
        return _CODE_MARK.sub("```\n", _ITEM_INDENT.sub("", str(converter.handle(part)))).strip()

    if not html.strip():
        return ""
    try:
        parser = lxml.html.HTMLParser(encoding="utf-8")
        tree = lxml.html.document_fromstring(html.encode("utf-8", "replace"), parser=parser)
    except (lxml.etree.ParserError, ValueError):
        return ""
    for name in _DROPPED:
        for element in tree.xpath(f"//{name}"):
            element.drop_tree()
    for comment in tree.xpath("//comment()|//processing-instruction()"):
        comment.drop_tree()
    notes = list(_notes(tree))
    body = rendered(lxml.html.tostring(tree, encoding="unicode"))
    defined = (f"[^{number}]: {_NOTE_NUMBER.sub('', ' '.join(rendered(note).split()))}" for number, note in notes)
    return "\n\n".join([body, *defined]).strip() + "\n"


def _notes(tree: Any) -> Iterator[tuple[int, str]]:
    """Replace the links to notes by footnote marks, and yield the removed notes as HTML with their numbers.

    A note is an element behind the link, to which a link with a short label leads.
    """
    order = {element: place for place, element in enumerate(tree.iter())}
    named = {
        element.get("id") or element.get("name"): element
        for element in tree.iter()
        if element.get("id") or element.get("name")
    }
    numbers: dict[Any, int] = {}
    marks: list[tuple[Any, int]] = []
    for link in tree.xpath("//a[starts-with(@href, '#')]"):
        target = named.get(unquote(link.get("href")[1:]))
        if target is None or not _NOTE_LABEL.fullmatch(link.text_content().strip()):
            continue
        note = next((each for each in (target, *target.iterancestors()) if each.tag in _NOTE_TAGS), None)
        if note is None or order[note] <= order[link] or len(note.text_content().split()) < 2:
            continue
        marks.append((link, numbers.setdefault(note, len(numbers) + 1)))
    for link, number in marks:
        if any(ancestor in numbers for ancestor in link.iterancestors()):
            continue  # a link from one note to another
        link.text, link.tag = f"[^{number}]", "span"
        for child in list(link):
            link.remove(child)
        link.attrib.clear()
    for note, number in numbers.items():
        for link in note.xpath(".//a[starts-with(@href, '#')]"):
            if _BACK_LABEL.fullmatch(link.text_content()):
                link.drop_tree()
        note.tag = "div"
        html = lxml.html.tostring(note, encoding="unicode", with_tail=False)
        note.drop_tree()
        yield number, html


def pdf_markdown(document: Any) -> str:
    """Convert an open PDF of PyMuPDF. Paragraphs are its text blocks; links are those of its annotations.

    Raises:
        Unreadable: It has too many pages, or no text.
    """
    if document.page_count > MAX_PDF_PAGES:
        raise Unreadable(f"has {document.page_count:,} pages (maximum {MAX_PDF_PAGES:,})")
    text = "\n\n".join(paragraph for page in document for paragraph in _paragraphs(page)).strip()
    if not text:
        raise Unreadable("has no text: if it is a scan, recognize its text (OCR) first")
    return text + "\n"


def _paragraphs(page: Any) -> Iterator[str]:
    links = [(link["from"], str(link["uri"])) for link in page.get_links() if link.get("uri")]
    words_only = pymupdf.TEXTFLAGS_DICT & ~(pymupdf.TEXT_PRESERVE_IMAGES | pymupdf.TEXT_PRESERVE_LIGATURES)
    for block in page.get_text("rawdict" if links else "dict", sort=True, flags=words_only)["blocks"]:
        lines = [line for line in ("".join(_pieces(line, links)).strip() for line in block.get("lines", ())) if line]
        if lines:
            yield _joined([_BULLET.sub("- ", line) for line in lines])


def _pieces(line: Any, links: list[tuple[Any, str]]) -> Iterator[str]:
    """Yield the text of a line, with its links in Markdown and superscript digits as such."""
    linked, label = None, ""
    largest = max((span["size"] for span in line["spans"]), default=0)
    for span in line["spans"]:
        raised = span["flags"] & _SUPERSCRIPT_FLAG or span["size"] < _SMALL * largest
        for text, box in _characters(span):
            url = next((url for place, url in links if _is_in(box, place)), None) if links else None
            if url != linked:
                yield from _link(label, linked)
                linked, label = url, ""
            label += text.translate(_SUPERSCRIPT) if raised and _DIGITS.fullmatch(_span_text(span).strip()) else text
    yield from _link(label, linked)


def _span_text(span: Any) -> str:
    return str(span["text"]) if "text" in span else "".join(each["c"] for each in span["chars"])


def _characters(span: Any) -> Iterator[tuple[str, Any]]:
    if "text" in span:
        yield span["text"], span["bbox"]
    else:
        yield from ((each["c"], each["bbox"]) for each in span["chars"])


def _is_in(box: Any, place: Any) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return bool(place.x0 <= x <= place.x1 and place.y0 <= y <= place.y1)


def _link(label: str, url: str | None) -> Iterator[str]:
    words = label.strip()
    if url is None or not words:
        yield label
        return
    target = url.replace(" ", "%20")
    if target.count("(") != target.count(")"):
        target = target.replace("(", "%28").replace(")", "%29")
    yield label[: len(label) - len(label.lstrip())]
    yield f"<{target}>" if words in {url, target} else f"[{words}]({target})"
    yield label[len(label.rstrip()) :]


def _joined(lines: list[str]) -> str:
    """Join the lines of a paragraph, but not the items of a list. A URL at the end of a line goes on in the next."""
    text = lines[0]
    for line in lines[1:]:
        if _LIST_ITEM.match(line):
            text += f"\n{line}"
        elif _OPEN_URL.search(text) and " " not in line.split(" ", 1)[0]:
            text += line
        else:
            text += f" {line}"
    return text
