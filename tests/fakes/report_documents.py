"""Reports as Word, HTML and PDF documents: two statements, each with a footnote or a link."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

import pymupdf

FIRST, SECOND = "https://a.example/bridge?x=1&y=2", "https://b.example/museum_(old)"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def link(relation: str, text: str) -> str:
    return f'<w:hyperlink r:id="{relation}">{run(text)}</w:hyperlink>'


def note(number: int) -> str:
    return f'<w:r><w:footnoteReference w:id="{number}"/></w:r>'


def paragraph(*runs: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{''.join(runs)}</w:p>"


def docx(body: Sequence[str] | None = None, notes: Mapping[int, str] | None = None, **members: bytes) -> bytes:
    """Return a Word document. ``notes`` are the runs of footnotes by number; ``members`` replace parts of it."""
    if body is None:
        body = [
            paragraph(run("Karrow Bay"), style="Heading1"),
            paragraph(
                run("The bridge opened in 1931"), note(1), run(". The museum has "), link("rId9", "40 boats"), run(".")
            ),
        ]
    notes = {1: run("Bridge office, ") + link("rId1", "history")} if notes is None else notes
    relations = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{escape(target)}"{mode}/>'
        for name, kind, target, mode in (
            ("rId1", "hyperlink", FIRST, ' TargetMode="External"'),
            ("rId2", "footnotes", "footnotes.xml", ""),
            ("rId9", "hyperlink", SECOND, ' TargetMode="External"'),
        )
    )
    written = "".join(f'<w:footnote w:id="{number}"><w:p>{runs}</w:p></w:footnote>' for number, runs in notes.items())
    parts: dict[str, bytes] = {
        "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        b'<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELS}"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="word/document.xml"/></Relationships>'.encode(),
        "word/document.xml": f"<w:document {_W} {_R}><w:body>{''.join(body)}</w:body></w:document>".encode(),
        "word/footnotes.xml": f"<w:footnotes {_W} {_R}>{written}</w:footnotes>".encode(),
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELS}">{relations}</Relationships>'.encode(),
        "word/_rels/footnotes.xml.rels": f'<Relationships xmlns="{_RELS}">{relations}</Relationships>'.encode(),
    } | {name.replace("__", "/").replace("_xml", ".xml"): data for name, data in members.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def html() -> bytes:
    return f"""<!doctype html><html><head><title>Report</title><style>p {{color: red}}</style></head><body>
<h1>Karrow Bay</h1><script>alert("x")</script><!-- note -->
<p>The bridge opened in 1931<sup><a href="#fn1" id="ref1">1</a></sup>.
The museum has <a href="{SECOND}">40 boats</a>. <img src="data:image/png;base64,AAAA" alt="A boat"></p>
<ol><li id="fn1">Bridge office, <a href="{escape(FIRST)}">history</a>. <a href="#ref1">\u21a9</a></li></ol>
</body></html>""".encode()


def pdf(pages: Sequence[Sequence[tuple[str, str]]] | None = None, **save: Any) -> bytes:
    """Return a PDF. Each page has lines of text, with the URL that the last word of the line leads to, or nothing."""
    document = pymupdf.open()
    for lines in pages or [
        [("The bridge opened in 1931 [history]", FIRST), ("", ""), ("The museum has 40 boats", SECOND)]
    ]:
        page = document.new_page()
        top = 72.0
        for text, url in lines:
            if text:
                page.insert_text((72, top), text, fontsize=11)
                width = pymupdf.get_text_length(text, fontsize=11)
                last = pymupdf.get_text_length(text.split(" ")[-1], fontsize=11)
                if url:
                    box = pymupdf.Rect(72 + width - last, top - 10, 72 + width, top + 3)
                    page.insert_link({"kind": pymupdf.LINK_URI, "from": box, "uri": url})
            top += 14 if text else 40
    return bytes(document.tobytes(**save))
