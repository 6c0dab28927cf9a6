"""Statements of a report and the claims that rules make of them."""

from __future__ import annotations

from answers.binding import bind
from app.features.check.statements import sections_of, split_by_rules

REPORT = """# Towers

## Eiffel Tower

- Height: 330 m
- Visitors: 6.3 million a year\ue200cite\ue202turn0search1\ue201
- Source: https://a.example/eiffel

- Big Ben
  - Height: 96 m
  - It first rang in 1859.
  - Source: https://b.example/ben

Steps
: 1,665

| City | Height |
|---|---|
| Oslo | 117 m [1] |

[1]: https://c.example/oslo
"""


def test_labels_are_completed_by_the_title_of_their_list_or_the_heading() -> None:
    sections = sections_of(bind(REPORT))
    statements = [each for section in sections for each in section.statements]
    assert [(each.plain, each.context) for each in statements] == [
        ("Height: 330 m", ""),
        ("Visitors: 6.3 million a year", ""),
        ("Big Ben", ""),
        ("Height: 96 m", "under: Big Ben"),
        ("It first rang in 1859.", "under: Big Ben"),
        ("Steps", ""),
        ("1,665", "under: Steps"),
        ("Oslo, 117 m", "columns: City, Height"),
    ]
    claims = [claim.text for section in sections for one in split_by_rules(section, REPORT) for claim in one.claims]
    assert claims == [
        "Eiffel Tower: Height: 330 m",
        "Eiffel Tower: Visitors: 6.3 million a year",
        "Big Ben",
        "Big Ben: Height: 96 m",
        "It first rang in 1859.",
        "Steps",
        "Eiffel Tower: Steps: 1,665",
        "Oslo, 117 m",
    ]


def test_lines_of_sources_are_no_statements() -> None:
    statements = [each.plain for section in sections_of(bind(REPORT)) for each in section.statements]
    assert not any("Source" in each for each in statements)
