"""Content of the reading view of a check."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser
from selectolax.lexbor import LexborNode

from app.dashboard.passages import text_fragment_url
from app.dashboard.viewer import Viewer
from app.features.check.reading_view import render_view
from tests.unit.app.features.check.checked import checked_report

VIEWER = cast(Viewer, SimpleNamespace(signed_in=True, form_token="token"))


async def shown(viewer: Viewer | None = None, **changes: object) -> HTMLParser:
    document, evidence = checked_report(**changes)
    return HTMLParser(await render_view(document, evidence.read, viewer=viewer))


def first(parent: HTMLParser | LexborNode, selector: str) -> LexborNode:
    found = parent.css_first(selector)
    assert found is not None
    return found


async def test_each_statement_has_the_class_of_its_outcome_and_a_panel():
    page = await shown()
    document, _ = checked_report()
    for number, statement in enumerate(document.statements):
        parts = page.css(f"[data-statement='{number}']")
        assert parts and all(f"o-{statement.outcome}" in (part.attributes["class"] or "") for part in parts)
        assert first(page, f"#s{number} .claim").text().strip() == statement.text
    assert len(page.css("a.at")) == len(document.statements)


async def test_panel_shows_the_quote_in_its_context_framed_in_the_screenshot_and_linked_to_the_live_page():
    page = await shown()
    panel = first(page, "#s0")
    assert first(panel, "mark").text() == "the Velm Institute was founded in 1931"
    assert str(first(panel, ".shot-part img").attributes["src"]).startswith("data:image/jpeg;base64,")
    assert len(panel.css(".shot-part rect")) >= 1
    assert ":~:text=the%20Velm%20Institute" in str(first(panel, ".links a").attributes["href"])


async def test_unsupported_words_are_marked_and_missing_verdicts_have_a_reason():
    page = await shown()
    assert first(page, "#s1 .claim .unsupported").text() == "after the flood of 1953"
    assert "It lacks café, forty, seats" in first(page, "#s5 .source-verdict .hint").text()
    assert first(page, "#s5 .passage").text() == "The yard has water for dogs."
    assert "sign-in form" in first(page, "#s4 .why").text()
    assert "budget" in first(page, "#s8 .why").text()


@pytest.mark.slow
async def test_file_needs_no_network_and_the_dashboard_links_captures():
    assert not re.search(r"(?:src|href)=\"(?!data:|#|https?://)", str((await shown()).html))
    page = await shown(VIEWER)
    assert first(page, "#s0 a[href^='/pages/page_']") is not None
    assert first(page, "nav a[aria-current='page']").text() == "Checks"
    assert {"/", "/tasks", "/checks"} <= {link.attributes["href"] for link in page.css(".top nav a")}


async def test_report_that_says_nothing_has_no_panels_and_no_table_of_sources():
    page = await shown(statements=[], sources=[])
    assert page.css_first(".report") is not None
    assert [page.css_first(selector) for selector in (".sources-table", ".keys")] == [None, None]


async def test_hostile_texts_stay_texts():
    document, evidence = checked_report()
    source = document.sources[0].model_copy(update={"title": "<script>x()</script>", "url": "javascript:x()"})
    hostile = document.model_copy(update={"sources": [source, *document.sources[1:]], "warnings": ["<img src=x>"]})
    page = HTMLParser(await render_view(hostile, evidence.read))
    assert len(page.css("script")) == 1 and page.css("img[src=x]") == [] and page.css("a[href^=javascript]") == []


@pytest.mark.parametrize(
    ("url", "text", "expected"),
    [
        ("https://a.example/", "one, two-three & four", "https://a.example/#:~:text=one%2C%20two%2Dthree%20%26%20four"),
        (
            "https://a.example/",
            "1 2 3 4 5 6 7 8 9 10 11",
            "https://a.example/#:~:text=1%202%203%204%205,7%208%209%2010%2011",
        ),
    ],
)
def test_text_fragments_are_escaped_and_long_quotes_become_ranges(url: str, text: str, expected: str):
    assert text_fragment_url(url, text) == expected
