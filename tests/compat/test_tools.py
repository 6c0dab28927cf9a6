"""Tools of task scripts, against local stand-ins of their services."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import googlemaps  # type: ignore[import-untyped]
import pymupdf
import pytest
from PIL import Image

from mind2web2 import ArxivTool, GoogleMapsTool, PDFParser
from mind2web2.api_tools.tool_pdf import is_pdf, is_pdf_by_suffix
from mind2web2.utils.page_info_retrieval import html_to_markdown
from tests.compat.scripted import LOGGER
from tests.compat.web import Reply, Request, Web, running_web
from tests.standin.flood import bodies, bounded_memory

KEY = "AIza-of-a-test"


def as_json(value: Any, status: int = 200) -> Reply:
    return Reply(json.dumps(value).encode(), "application/json", status)


def geocode(request: Request) -> Reply:
    places = {
        "Eiffel Tower": [
            {
                "formatted_address": "Av. Gustave Eiffel, Paris",
                "address_components": [
                    {"long_name": "7th Arrondissement", "types": ["political", "sublocality", "sublocality_level_1"]},
                    {"long_name": "Paris", "types": ["locality", "political"]},
                ],
            }
        ],
        "the sea": [{"formatted_address": "Atlantic", "address_components": []}],
    }
    if request.query["address"] == "refused":
        return as_json({"status": "REQUEST_DENIED", "error_message": "this key may not", "results": []})
    found = places.get(request.query["address"], [])
    return as_json({"status": "OK" if found else "ZERO_RESULTS", "results": found})


def matrix(request: Request) -> Reply:
    if request.query["destinations"] == "Atlantis":
        element: dict[str, Any] = {"status": "NOT_FOUND"}
    else:
        slow = request.query["mode"] == "walking"
        element = {"status": "OK", "distance": {"value": 1200}, "duration": {"value": 900 if slow else 180}}
    return as_json({"status": "OK", "rows": [{"elements": [element]}]})


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleMapsTool]:
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    with running_web({"/maps/api/geocode/json": geocode, "/maps/api/distancematrix/json": matrix}) as web:
        tool = GoogleMapsTool(base_url=web.origin, timeout_s=240)
        yield tool
        tool.client.session.close()
        assert all(request.query["key"] == KEY for request in web.requests)


def test_key_can_be_in_the_dotenv_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOOGLE_MAPS_API_KEY", raising=False)
    with pytest.raises(ValueError, match="GOOGLE_MAPS_API_KEY is not set"):
        GoogleMapsTool()
    (tmp_path / ".env").write_text("GOOGLE_MAPS_API_KEY=AIza-of-the-file\n")
    assert GoogleMapsTool().client.key == "AIza-of-the-file"


async def test_city_name_or_not_found_text(maps: GoogleMapsTool):
    assert await maps.get_city_name("Eiffel Tower") == "Paris"
    assert await maps.get_city_name(address="Eiffel Tower", level="sublocality") == "7th Arrondissement"
    for nowhere in ("the sea", "nowhere"):
        assert await maps.get_city_name(nowhere) == "City/Sub-city name not found"


async def test_distances_and_times_are_whole_numbers(maps: GoogleMapsTool):
    distance = await maps.calculate_distance(address1="Eiffel Tower", address2="Louvre", mode="driving")
    assert isinstance(distance, int)
    assert distance == 1200
    assert await maps.calculate_travel_time("Eiffel Tower", "Louvre") == 180
    assert await maps.calculate_travel_time("Eiffel Tower", "Louvre", mode="walking") == 900


async def test_unknown_route_returns_a_not_found_text(maps: GoogleMapsTool):
    assert await maps.calculate_distance("Eiffel Tower", "Atlantis") == "Distance not found"
    assert await maps.calculate_travel_time("Eiffel Tower", "Atlantis", "transit") == "Travel time not found"


ENTRY = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/"
      xmlns:arxiv="http://arxiv.org/schemas/atom">
  <opensearch:totalResults>{total}</opensearch:totalResults>
  <opensearch:startIndex>0</opensearch:startIndex>
  <opensearch:itemsPerPage>{total}</opensearch:itemsPerPage>{entry}
</feed>"""
PAPER = """<entry>
    <id>http://arxiv.org/abs/2301.00001v2</id>
    <updated>2023-02-03T04:05:06Z</updated><published>2023-01-02T03:04:05Z</published>
    <title>On Checking Sources</title><summary>We check.</summary>
    <author><name>Ann Author</name></author><author><name>Bob Writer</name></author>
    <arxiv:comment>3 pages</arxiv:comment><arxiv:doi>10.1/x</arxiv:doi><arxiv:journal_ref>J. Test</arxiv:journal_ref>
    <link href="http://arxiv.org/abs/2301.00001v2" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/2301.00001v2" rel="related" type="application/pdf"/>
    <arxiv:primary_category term="cs.CL"/><category term="cs.CL"/><category term="cs.AI"/>
  </entry>"""


def query(request: Request) -> Reply:
    wanted = request.query["id_list"] or request.query["search_query"]
    if wanted == "bad id":
        return Reply(b"incorrect id format", "text/plain", 400)
    known = wanted in ("2301.00001v2", 'ti:"On Checking Sources"')
    return Reply(ENTRY.format(total=int(known), entry=PAPER if known else "").encode(), "application/atom+xml")


@pytest.fixture
def papers() -> Iterator[tuple[ArxivTool, Web]]:
    with running_web({"/api/query": query}) as web:
        tool = ArxivTool(page_size=7, query_url=f"{web.origin}/api/query", delay_s=0, retries=1, timeout_s=240)
        yield tool, web
        tool.client._session.close()


async def test_paper_is_found_by_id(papers: tuple[ArxivTool, Web]):
    tool, web = papers
    paper = await tool.search_arxiv_by_id("2301.00001v2")
    assert paper is not None
    assert paper["entry_id"] == "http://arxiv.org/abs/2301.00001v2"
    assert paper["published"] == datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert paper["updated"] == datetime(2023, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert [author.name for author in paper["authors"]] == ["Ann Author", "Bob Writer"]
    assert (paper["title"], paper["summary"], paper["comment"]) == ("On Checking Sources", "We check.", "3 pages")
    assert (paper["journal_ref"], paper["doi"]) == ("J. Test", "10.1/x")
    assert (paper["primary_category"], paper["categories"]) == ("cs.CL", ["cs.CL", "cs.AI"])
    assert paper["pdf_url"] == "http://arxiv.org/pdf/2301.00001v2"
    assert len(paper["links"]) == 2
    assert web.requests[0].query["max_results"] == "7"


async def test_paper_is_found_by_title(papers: tuple[ArxivTool, Web]):
    tool, _ = papers
    paper = await tool.search_arxiv_by_title('On Checking "Sources')
    assert paper is None
    paper = await tool.search_arxiv_by_title("On Checking Sources")
    assert paper is not None
    assert paper["title"] == "On Checking Sources"


@pytest.mark.parametrize("id", ["9999.99999", "bad id"])
async def test_missing_paper_is_none(id: str, papers: tuple[ArxivTool, Web]):
    assert await papers[0].search_arxiv_by_id(id) is None


@pytest.mark.parametrize(
    ("link", "is_link", "id"),
    [
        ("https://arxiv.org/pdf/2301.00001v2.pdf", True, "2301.00001v2"),
        ("https://arxiv.org/pdf/2301.00001v3#page=2", True, "2301.00001v3"),
        ("https://arxiv.org/abs/2301.00001", False, "2301.00001"),
    ],
)
def test_arxiv_pdf_links_are_recognised(link: str, is_link: bool, id: str):
    assert ArxivTool.is_arxiv_pdf_link(link) is is_link
    assert ArxivTool.get_arxiv_id_from_pdf_link(link) == id


def make_pdf(pages: int = 2) -> bytes:
    document = pymupdf.open()
    for number in range(pages):
        document.new_page(width=200, height=100).insert_text((20, 50), f"Words of page {number + 1}")
    data: bytes = document.tobytes()
    document.close()
    return data


def image(encoded: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(encoded)))


@pytest.mark.parametrize("give", ["bytes", "buffer", "path", "text"])
async def test_pdf_is_parsed_into_text_and_page_images(give: str, tmp_path: Path):
    path = tmp_path / "x.pdf"
    path.write_bytes(make_pdf())
    source: Any = {"bytes": make_pdf(), "buffer": io.BytesIO(make_pdf()), "path": path, "text": str(path)}[give]
    images, text = await PDFParser().extract(source)
    assert [line.strip() for line in text.splitlines() if line.strip()] == ["Words of page 1", "Words of page 2"]
    assert [(image(each).format, image(each).size) for each in images] == [("JPEG", (400, 200))] * 2


@pytest.mark.parametrize("source", [b"", b"%PDF-1.4 broken", "/no/such/file.pdf", None])
async def test_invalid_pdf_returns_an_error_text_and_does_not_raise(source: Any):
    images, text = await PDFParser().extract(source)
    assert text.startswith("PDF extraction failed: ")
    assert [image(each).size for each in images] == [(1, 1)]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    pages = {
        "/doc": Reply(make_pdf(), "application/octet-stream"),
        "/page": Reply(b"<!doctype html><p>" + b"An ordinary page. " * 20),
        "/lies": Reply(b"<!doctype html><p>" + b"No PDF at all. " * 20, "application/pdf"),
    }
    with running_web(pages) as web:
        monkeypatch.setenv("ASSAY_EGRESS_ALLOW", web.host_port)
        yield web


async def test_pdf_is_fetched_by_url(site: Web):
    images, text = await PDFParser().extract(f"{site.origin}/doc")
    assert "Words of page 1" in text
    assert len(images) == 2


@pytest.mark.parametrize("path", ["page", "nothing"])
async def test_url_without_a_pdf_returns_an_error_text(path: str, site: Web):
    images, text = await PDFParser().extract(f"{site.origin}/{path}")
    assert text.startswith("PDF extraction failed: ")
    assert len(images) == 1


async def test_is_pdf_checks_the_content_on_the_server(site: Web):
    assert await is_pdf(f"{site.origin}/doc", LOGGER)
    assert not await is_pdf(f"{site.origin}/page")
    assert not await is_pdf(f"{site.origin}/lies")
    assert not await is_pdf(f"{site.origin}/nothing")


async def test_is_pdf_sends_no_request_to_private_addresses(site: Web, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ASSAY_EGRESS_ALLOW")
    assert not await is_pdf(f"{site.origin}/doc")
    assert site.requests == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/X.PDF?download=1#page=2", True),
        ("https://arxiv.org/pdf/2301.00001", True),
        ("https://a.com/get?file=x.pdf", True),
        ("https://a.com/pdf-readers.html", False),
        ("https://a.com/x?about=pdf", False),
    ],
)
def test_is_pdf_by_suffix(url: str, expected: bool):
    assert is_pdf_by_suffix(url) is expected


def test_html_to_markdown():
    html = "<h1>Title</h1><p>Some <b>bold</b> text<img src=x.png> with a <a href='https://a.com'>link</a>.</p>"
    assert html_to_markdown(html) == "# Title\n\nSome **bold** text with a [link](https://a.com)."


@pytest.mark.parametrize("body", ["no length", "empty gzip members"])
async def test_oversized_response_of_a_service_is_a_fault_and_not_read_to_its_end(
    body: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    async with bodies()[body] as server:
        places = GoogleMapsTool(base_url=server.origin, timeout_s=240)
        papers = ArxivTool(query_url=f"{server.origin}/api/query", delay_s=0, retries=0, timeout_s=240)
        with bounded_memory():
            with pytest.raises(googlemaps.exceptions.TransportError, match="more than 4194304 bytes"):
                await places.get_address_information("Paris")
            with pytest.raises(OSError, match="more than 4194304 bytes"):
                await papers.search_arxiv_by_id("2301.00001")
        server.assert_not_read()
        places.client.session.close()
        papers.client._session.close()
