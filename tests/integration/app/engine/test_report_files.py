"""Reports from files: Word, HTML and PDF become Markdown with their links and footnotes; bad files are refused."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

import pymupdf
import pytest

from answers.binding import bind
from answers.errors import InvalidSubmission, ProblemCode
from app.engine.report_files import MAX_DOCUMENT_BYTES, read_report
from tests.fakes.report_documents import FIRST, SECOND, docx, html, link, note, paragraph, pdf, run


async def bound(name: str, data: bytes) -> dict[str, str | None]:
    """Return the statements of a file with the URL that each cites."""
    found = bind((await read_report(name, data)).text)
    return {
        found.text[mark.statement_start : mark.statement_end].partition("[")[0].strip(" ."): None
        if mark.source is None
        else found.sources[mark.source].url
        for mark in found.marks
    }


@pytest.mark.parametrize("name", ["r{}", "R{}", ""])
@pytest.mark.parametrize(("suffix", "data"), [(".docx", docx()), (".html", html()), (".PDF", pdf())])
async def test_links_and_footnotes_of_a_document_are_citations(name: str, suffix: str, data: bytes) -> None:
    cited = await bound(name.format(suffix), data)
    assert cited["The bridge opened in 1931"] == FIRST
    assert SECOND in cited.values()
    assert len(cited) == 2


async def test_markdown_of_a_word_document() -> None:
    assert (await read_report("r.docx", docx())).text == (
        "# Karrow Bay\n\nThe bridge opened in 1931[^1]. The museum has [40 boats](https://b.example/museum_\\(old\\)).\n\n"
        f"[^1]: Bridge office, [history]({FIRST})\n"
    )
    cells = [[run("Year"), run("Source")], [run("1931"), link("rId1", "x")]]
    rows = ("".join(f"<w:tc><w:p>{cell}</w:p></w:tc>" for cell in row) for row in cells)
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    body = [paragraph(run("Two"), note(2), run(" and one"), note(1)), table]
    text = (await read_report("r.docx", docx(body, {1: run("One note"), 2: run("Note two")}))).text
    assert "Two[^1] and one[^2]" in text
    assert "[^1]: Note two" in text and "[^2]: One note" in text
    assert f"[x]({FIRST})" in text and "Year" in text


@pytest.mark.parametrize(
    ("body", "markdown"),
    [
        (
            "<p>A<sup><a href='#n'>[1]</a></sup>.<p id='n'>[1] See <a href='https://a.example'>it</a>",
            "A[^1].\n\n[^1]: See [it](https://a.example)\n",
        ),
        ("<p>A<a href='#n'>*</a>.<div><a id='n'></a>A note here</div>", "A[^1].\n\n[^1]: A note here\n"),
        ("<p><a href='#top'>1</a> A b.</p><p id='other'>1 b</p>", "1 A b.\n\n1 b\n"),
        ("<p id='up'>Long text here <a href='#up'>1</a></p>", "Long text here"),
        ("<p>A <a href='#s2'>Section two</a></p><h2 id='s2'>Two b</h2>", "A "),
        (
            "<ul><li>a <a href='https://a.example/?a=1&amp;b=2'>b</a><ol><li>c</ol><li>d</ul>",
            "* a [b](https://a.example/?a=1&b=2)\n  1. c\n* d\n",
        ),
        ("<ul><li>b</li></ul><pre>a[1] = 2</pre><p>c</p>", "```\n\n    a[1] = 2\n```\n"),
        ("<p>A<script>x</script><style>y</style><!-- z --><template>t</template></p>", "A\n"),
        ("<p>\u6771\u4eac \U0001f309 caf\u00e9 &amp; &lt;b&gt;</p>", "\u6771\u4eac \U0001f309 caf\u00e9 & <b>\n"),
    ],
)  # fmt: skip
async def test_markdown_of_html(body: str, markdown: str) -> None:
    assert markdown in (await read_report("r.html", f"<html><body>{body}</body></html>".encode())).text


async def test_charset_of_html_is_that_of_its_declaration() -> None:
    page = '<html><head><meta charset="windows-1251"></head><body>\u041c\u043e\u0441\u0442 1931'.encode("cp1251")
    assert (await read_report("r.html", page)).text == "\u041c\u043e\u0441\u0442 1931\n"


async def test_lines_of_a_pdf_become_paragraphs_lists_and_superscripts() -> None:
    page = pymupdf.open().new_page()
    page.insert_htmlbox(
        pymupdf.Rect(72, 72, 400, 780),
        "<p>The bridge opened in 1931<sup>1</sup> and was closed in the year after the war by the office of the bay."
        "</p><ul><li>One item</li></ul><p><sup>1</sup> Office, https://a.example/a/long/path/that/does/not/fit/into/one"
        "/line/of/the/page/index.html</p>",
    )
    text = (await read_report("r.pdf", page.parent.tobytes())).text
    assert "1931\u00b9 and was closed in the year after the war by the office of the bay." in text
    assert "\n- One item\n" in text
    assert "\u00b9 Office, https://a.example/a/long/path/that/does/not/fit/into/one/line/of/the/page/index.html" in text


async def test_text_and_replies_are_read_as_before() -> None:
    assert (await read_report("r.md", b"\xef\xbb\xbfA b.\r\n")).text == "A b.\r\n"
    reply = {"content": [{"type": "text", "text": "A.", "citations": [{"document_title": "notes.txt"}]}]}
    for name in ("r.json", ""):
        report = await read_report(name, json.dumps(reply).encode())
        assert report.text == "A." and "notes.txt" in report.warnings[0]


async def test_html_as_markdown_is_a_warning() -> None:
    report = await read_report("r.md", html())
    assert report.text == html().decode()
    assert report.warnings == ("r.md is HTML but is read as Markdown: give it the suffix .html to convert it",)
    assert (await read_report("r.md", b"# A\n\n<p>b</p> [c](https://a.example)")).warnings == ()


ENCRYPTED: dict[str, Any] = {"encryption": 5, "user_pw": "a", "owner_pw": "b"}  # AES-256
ENTITIES = b"<!DOCTYPE x [" + b"".join(
    b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 20 if n else b"a" * 9_999) for n in range(8)
) + b"]><x>&a7;</x>"  # fmt: skip
BAD = [
    ("r.md", b" \n", "is empty", ProblemCode.EMPTY),
    ("r.docx", b"", "is empty", ProblemCode.EMPTY),
    ("r.md", b"a" * (MAX_DOCUMENT_BYTES + 1), "is larger than 20 MB", ProblemCode.TOO_LARGE),
    ("r.md", pdf(), "is a PDF, not text: rename it to .pdf", ProblemCode.NOT_TEXT),
    ("r.json", docx(), "is a Word document (.docx), not text", ProblemCode.NOT_TEXT),
    ("r.md", b"a\0b", "contains a NUL character", ProblemCode.NOT_TEXT),
    ("r.md", "caf\u00e9".encode("latin-1"), "is not UTF-8 (byte 3)", ProblemCode.NOT_TEXT),
    ("r.json", b"{", "is not JSON", ProblemCode.NOT_JSON),
    ("", b"\x89PNG\r\n\x1a\n", "is neither text nor", ProblemCode.NOT_TEXT),
    ("r.docx", pdf(), "is not a Word document (.docx), although its name ends in .docx: rename it to .pdf", None),
    ("r.docx", b"text", "is not a Word document", None),
    ("r.pdf", html(), "is not a PDF, although its name ends in .pdf: rename it to .html", None),
    ("r.html", docx(), "although its name ends in .html: rename it to .docx", None),
    ("r.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an encrypted or old Office document: save it as .docx", None),
    ("r.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an encrypted or old Office document", None),
    ("r.odt", docx(), "is a .odt file: save it as .docx", None),
    ("r.docx", docx()[:-40], "is damaged or truncated", None),
    ("r.docx", docx(word__document_xml=b"<w:document"), "is damaged or truncated", None),
    ("r.docx", docx(word__document_xml=ENTITIES), "is damaged or truncated", None),
    ("r.docx", docx(word__document_xml=b"<x/>" + b" " * 70_000_000), "decompresses to more than 64 MiB", None),
    ("r.docx", docx([paragraph()]), "contains no text", ProblemCode.EMPTY),
    ("r.html", b"<html><body><img src='x'></body></html>", "contains no text", ProblemCode.EMPTY),
    ("r.pdf", pdf(**ENCRYPTED), "is encrypted: remove the password", None),
    ("r.pdf", pdf()[:-900], "is damaged: it is truncated", None),
    ("r.pdf", b"%PDF-1.7\nrubbish", "is damaged", None),
    ("r.pdf", pdf([[("", "")]]), "has no text", None),
]


@pytest.mark.parametrize(("name", "data", "message", "code"), BAD, ids=[f"{one[0]}-{one[2][:30]}" for one in BAD])
async def test_bad_file_is_refused_with_what_and_where(
    name: str, data: bytes, message: str, code: ProblemCode | None
) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        await read_report(name, data, path="answers.0.document")
    [problem] = caught.value.problems
    assert problem.path == "answers.0.document"
    assert message in problem.message and len(problem.message) < 400
    assert problem.code is (code or ProblemCode.BAD_DOCUMENT)


async def test_zip_that_is_no_word_document_is_refused() -> None:
    with pytest.raises(InvalidSubmission, match="is a zip archive, but not a Word document"):
        await read_report("r.docx", docx().replace(b"word/document.xml", b"xl/workbook.xmlxx"))


async def test_conversion_of_a_hostile_document_does_not_block_the_event_loop() -> None:
    longest, stopped = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not stopped.is_set():
            before = time.thread_time()  # a busy machine delays the loop too, but does not compute in its thread
            await asyncio.sleep(0.005)
            longest = max(longest, time.thread_time() - before)

    watching = asyncio.create_task(watch())
    nested = b"<html><body>" + b"<b><table>" * 20_000 + b"text"
    for name, data in (("r.docx", docx(word__document_xml=ENTITIES)), ("r.html", nested), ("r.pdf", pdf())):
        with suppress(InvalidSubmission):
            await read_report(name, data)
    stopped.set()
    await watching
    assert longest < 0.25
