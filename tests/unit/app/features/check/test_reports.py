"""Text of a published page with its links."""

from __future__ import annotations

from answers.binding import bind
from app.features.check.reports import text_with_links

PAGE = "https://reports.example/bay"


def test_links_to_other_sites_become_citations() -> None:
    text = "Menu\n\nThe harbor has 40 berths [1]. It closes at noon, says the guild."
    links = (("[1]", "https://a.example/x_(y)"), ("the guild", "https://b.example/"))
    written = text_with_links(text, links, PAGE)
    assert written == (
        "Menu\n\nThe harbor has 40 berths [[1]](https://a.example/x_%28y%29). "
        "It closes at noon, says [the guild](https://b.example/)."
    )
    binding = bind(written)
    assert [binding.sources[mark.source or 0].url for mark in binding.marks] == [
        "https://a.example/x_%28y%29",
        "https://b.example/",
    ]


def test_menus_and_links_to_the_page_itself_are_no_citations() -> None:
    text = "Home\nNews\n\nThe harbor has 40 berths, as the long list of the year shows [2].\nTop"
    links = (
        ("Home", "https://reports.example/"),
        ("News", "https://reports.example/news"),
        ("list of the year", "https://reports.example/list"),
        ("[2]", f"{PAGE}#note-2"),
        ("Top", f"{PAGE}#top"),
        ("mail", "mailto:a@b.example"),
    )
    assert text_with_links(text, links, PAGE) == text.replace(
        "list of the year", "[list of the year](https://reports.example/list)"
    )
