"""Pages that come with a report: valid and invalid lines, and what is stored."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from cache.pages import utc_now
from cache.sources import supplied
from cache.sources.supplied import SuppliedRejected, read_supplied

URL = "https://a.example/x"


def line(**fields: Any) -> bytes:
    return json.dumps({"url": URL, "text": "The bridge opened in 1931.", **fields}).encode()


def read(*lines: bytes) -> list[tuple[str, str, str]]:
    pages = read_supplied(io.BytesIO(b"\n".join(lines)), supplier="pages.jsonl", now=utc_now())
    assert {page.uploader for page in pages} == {"pages.jsonl"}
    return [(page.url, page.title, page.text or "") for page in pages]


def test_pages_are_read_in_file_order_with_their_titles() -> None:
    lines = (
        b"\xef\xbb\xbf" + line(title=" The\n bridge "),
        b"",
        line(url="http://b.example/?q=1", text="\u6a4b \U0001f309", title=None),
    )
    assert read(*lines) == [
        (URL, "The bridge", "The bridge opened in 1931."),
        ("http://b.example/?q=1", "", "\u6a4b \U0001f309"),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "contains no page"),
        ([b"", b" \r"], "contains no page"),
        ([b"<html>"], "line 1: is not JSON"),
        ([b"[" * 100_000], "line 1: is not JSON"),
        ([b"\xff\xfe{"], "line 1: is not JSON"),
        ([b'["' + URL.encode() + b'"]'], "line 1: is not a JSON object"),
        ([b'{"https://a.example/x": "text"}'], "line 1: unknown field 'https://a.example/x': use url, title"),
        ([line(html="<p>x")], "line 1.text: is given beside html: give one of text, html, mhtml, pdf, image"),
        ([line(text=None, file="x.pdf")], "line 1: unknown field 'file'"),
        ([line(text=None, pdf="%PDF-1.4")], "line 1.pdf: is not Base64"),
        ([line(text=None, pdf="SGFsbG8=")], "line 1.pdf: is text by its bytes, not pdf"),
        ([line(text=None, image="JVBERi0xLjQ=")], "line 1.image: is pdf by its bytes, not image"),
        ([line(text=None, mhtml="<p>x")], "line 1.mhtml: is html by its bytes, not mhtml"),
        ([line(retrieved_at="yesterday")], "line 1.retrieved_at: is not a time"),
        ([line(), b"{}"], "line 2.url: is missing"),
        ([line(url=" ")], "line 1.url: is missing"),
        ([line(url=3)], "line 1.url: is not a string"),
        ([line(url="file:///etc/passwd")], "line 1.url: only http and https"),
        ([line(url="https://user:key@a.example/")], "line 1.url: the address contains credentials"),
        ([line(url="https://a.example/" + "a" * 9_000)], "line 1.url: the address is longer"),
        ([line(text=None)], "line 1.text: is missing or empty"),
        ([line(text="\n")], "line 1.text: is empty"),
        ([line(text=["x"])], "line 1.text: is not a string"),
        ([line(title="a\x1b[31m")], "line 1.title: has control characters"),
        ([line(title="a" * 1_001)], "line 1.title: has control characters or more than 1,000"),
        (
            [line(), b"", line(url="https://A.example/x#part")],
            "line 3.url: https://A.example/x#part is already given by line 1",
        ),
    ],
)
def test_invalid_line_is_refused_with_line_field_and_problem(lines: list[bytes], message: str) -> None:
    with pytest.raises(SuppliedRejected) as caught:
        read(*lines)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_number_of_pages_and_length_of_a_line_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supplied, "MAX_PAGES", 2)
    with pytest.raises(SuppliedRejected, match="line 3: more than 2 pages"):
        read(*(line(url=f"{URL}/{number}") for number in range(3)))
    monkeypatch.setattr(supplied, "MAX_LINE_BYTES", 20)
    with pytest.raises(SuppliedRejected, match="line 1: longer than"):
        read(line())
