# ruff: noqa: RUF001 - the tests use the signs and digits of other scripts
from __future__ import annotations

import datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.yaml_tasks.expressions import (
    ExpressionError,
    ListOf,
    Record,
    Scalar,
    Variable,
    has_words,
    parse_condition,
    parse_expression,
    parse_template,
)
from judges.yaml_tasks.values import (
    MAX_CHARS,
    Interval,
    clock_minutes,
    date_interval,
    first_number,
    is_date,
    spaced_words,
)

GAUGE = Record({"name": Scalar.TEXT, "price": Scalar.TEXT, "hours": Scalar.NUMBER, "urls": ListOf(Scalar.TEXT)})
SCOPE = {
    "name": Variable(Scalar.TEXT),
    "year": Variable(Scalar.TEXT),
    "weight": Variable(Scalar.NUMBER),
    "sold": Variable(Scalar.BOOLEAN),
    "day": Variable(Scalar.DATE),
    "gauges": Variable(ListOf(GAUGE)),
    "best": Variable(GAUGE),
    "tags": Variable(ListOf(Scalar.TEXT)),
    "limit": Variable(Scalar.NUMBER, extracted=False),
}
KESTREL = {"name": "Kestrel 4", "price": "1,250 crowns", "hours": 96.0, "urls": ["https://a.example/1"]}
HERON = {"name": "Heron 2", "price": "", "hours": None, "urls": ["https://a.example/2", "https://a.example/3"]}
VALUES = {
    "name": " Ida  NORRSTAD",
    "year": "1871",
    "weight": 3.5,
    "sold": True,
    "day": "16 August 2025",
    "gauges": [KESTREL, HERON],
    "best": HERON,
    "tags": [],
    "limit": 4,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("given(name)", True),
        ("given(best.price)", False),
        ("name == 'ida norrstad'", True),
        ("year == '18715'", False),
        ("best.price != 'anything'", False),  # missing: every comparison is false, also under `not`
        ("not (best.hours > 5)", False),
        ("not (best.hours > 5 and weight > 9)", True),
        ("not (best.hours > 5 or weight > 9)", False),
        ("not given(best.hours)", True),
        ("weight >= -1 and not (weight > 3.5 or sold == false)", True),
        ("within(weight, 3, 4)", True),
        ("count(gauges.urls) == 3", True),
        ("count(unique(gauges.name)) >= 2", True),
        ("day < '2025-09-01'", True),
        ("year in ['1870', '1871']", True),
        ("matches(year, '\\d{4}')", True),
        ("matches(year, '18')", False),
        ("contains(name, 'norr')", False),
        ("words(name) <= 2", True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert parse_condition(text, SCOPE).evaluate(VALUES) is expected


def test_find_returns_the_item_with_the_words_and_else_an_empty_record() -> None:
    assert parse_expression("find(gauges, 'name', 'KESTREL 4')", SCOPE).evaluate(VALUES) == KESTREL
    assert parse_expression("find(gauges, 'name', 'Kestrel')", SCOPE).evaluate(VALUES) == KESTREL
    missing = parse_expression("find(gauges, 'name', 'Kestrel 40')", SCOPE).evaluate(VALUES)
    assert missing == {"name": "", "price": "", "hours": None, "urls": []}


@pytest.mark.parametrize(("number", "name"), [(1, "Kestrel 4"), (3, ""), (-1, "")])
def test_item_counts_from_one_and_is_empty_outside_of_the_list(number: int, name: str) -> None:
    assert parse_expression(f"item(gauges, {number})", SCOPE).evaluate(VALUES)["name"] == name


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("name == ''", 8, "nothing equals ''"),
        ("nme == 'x'", 0, "no field 'nme' (did you mean 'name'?); the fields here are name, year"),
        ("best.prise == 'x'", 5, "best has no field 'prise' (did you mean 'price'?); it has name, price, hours, urls"),
        ("__import__('os')", 0, "no function '__import__'; the functions are contains, count"),
        ("name.upper()", 5, "has no fields"),
        ("name < 'x'", 5, "`<` compares numbers or dates"),
        ("day == 'soon'", 7, "compare a date with a date"),
        ("day < date('31 February 2024')", 11, "is not an English date"),
        ("within(weight, 89, 86)", 15, "no value is in this range"),
        ("within(day, '2025-12-31', '2025-01-01')", 12, "no value is in this range"),
        ("name == 'x", 8, "close the quote"),
        ("name and sold", 0, "must be boolean, this is text"),
        ("matches(name, '(?=a)')", 14, "look-around"),
        ("matches(name, '" + "a" * 201 + "')", 14, "longer than 200 characters"),
        ("sold or " * 200 + "sold", 0, "longer than 1000 characters"),
        ("name in ['a', 3]", 14, "all of one type"),
        ("sold AND sold", 5, "write `and` in lower case"),
    ],
)
def test_errors_of_an_expression_name_the_place_and_what_would_be_right(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text, SCOPE)
    assert message in str(caught.value)
    assert caught.value.offset == offset


def test_templates_show_values_as_a_claim_needs_them() -> None:
    template = parse_template("{{{best.name}}} lasts {best.hours}/{ weight } h, {gauges.name}, {sold}, {limit}", SCOPE)

    assert template.render(VALUES) == "{Heron 2} lasts /3.5 h, Kestrel 4, Heron 2, yes, 4"
    assert template.extracted


def test_braces_in_a_value_are_not_placeholders() -> None:
    assert parse_template("{name}", SCOPE).render({"name": "{year} {0.__class__}"}) == "{year} {0.__class__}"


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("about {name!r}", 6, "names no field"),
        ("about {best.__class__.__init__}", 12, "best has no field '__class__'"),
        ("about {name", 6, "a single brace"),
    ],
)
def test_a_placeholder_is_only_the_path_of_a_field(text: str, offset: int, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_template(text, SCOPE)
    assert message in str(caught.value)
    assert caught.value.offset == offset


def test_whether_a_text_depends_on_the_answer_is_known() -> None:
    assert not parse_template("no field", SCOPE).extracted
    assert not parse_template("{limit}", SCOPE).extracted
    assert not parse_expression("limit == 3", SCOPE).extracted
    assert parse_expression("limit == weight", SCOPE).extracted


@given(st.text(max_size=60))
def test_no_text_raises_another_error(text: str) -> None:
    for parse in (parse_expression, parse_template):
        try:
            parse(text, SCOPE)
        except ExpressionError as error:
            assert 0 <= error.offset <= len(text)


CONDITIONS = [
    "given(name, best)", "name == year", "within(number(year), 1, 2)", "date(name) < day", "count(unique(tags)) >= 1",
    "matches(name, '(a*)*b')", "contains(name, year)", "minutes(name) <= minutes(year)", "weight > limit",
    "words(name) < 3", "name in ['a', 'b']", "sold",
]  # fmt: skip


@given(st.text(), st.text(), st.floats() | st.none(), st.lists(st.text()))
def test_no_extracted_value_makes_an_evaluation_raise(name: str, year: str, weight: float | None, tags: list) -> None:
    values = {**VALUES, "name": name, "year": year, "day": year, "weight": weight, "tags": tags, "sold": None}
    for condition in CONDITIONS:
        parse_condition(condition, SCOPE).evaluate(values)


NUMBERS = {
    "1,250.50 crowns": 1250.5, "none": None, "9" * 400: None, "US$5": 5, "2½ hours": 2.5, "½ hour": 0.5, "-2½": -2.5,
    "1,250¼": 1250.25, "1/2": None, "2 and a half hours": None, "72¹ hours": 72, "72[1] hours": 72, "10² m": None,
    "10^6": None, "1.5e8": None, "[1] 72 hours": None, "5 m²": 5, "12 500 kr": 12500, "1’250": 1250,
    "12\u202f500": 12500, "١٬٢٥٠": 1250, "1 250.5": 1250.5, "2019 500 people": None, "1,25,000": None, ".5 kg": 0.5,
    "12,5 kg": None, "1.250,50": None, "1.250.000": None, "٣٫٥": 3.5, "COVID-19": None, "H2O": None, "v2.5": None,
    "+49 30 123": None, "about -3 degrees": -3, "–5 °C": -5, "−5 °C": -5, "-$5": -5, "minus 5": -5, "- 5": None,
    "Total-$5": None, "5–10 km": None, "5 to 10": None, "5 × 10 m": None, "9:25": None, "2025-08-16": None, "5km": 5,
    "25%": 25, "5㎞": 5, "1st": 1, "5-star": 5, "1.5 million": None, "5k": None, "5 millimetres": 5, "5万": None,
    "１２５０": 1250, "𝟏𝟐": 12, "1②": None, "五 5": None,
}  # fmt: skip


def test_number_is_the_value_or_missing() -> None:
    assert {text: first_number(text) for text in NUMBERS} == NUMBERS


TIMES = {
    "at 9:25": 565, "9:25 p.m.": 1285, "9:25PM": 1285, "9:25\u202fPM": 1285, "9：25 pm": 1285, "٩:٢٥": 565,
    "12:05 am": 5, "12:00 noon": 720, "9:25:30 pm": 1285.5, "2025-08-16T09:25": 565, "8:40, arrives 9:25": 520,
    "25:00": None, "9:60": None, "13:25 am": None, "noon": None, "12 am": None, "9.25 pm": None, "9:25–10:00": None,
    "9:25 to 10:00 pm": None, "+05:30": None, "pm 9:25": None, "9:25 in the evening": None, "12:00 midnight": None,
    "9:25½": None,
}  # fmt: skip


def test_minutes_are_the_value_or_missing() -> None:
    assert {text: clock_minutes(text) for text in TIMES} == TIMES


DATES = {
    "on 2025-08-16.": "2025-08-16", "Saturday, 16 August 2025": "2025-08-16", "Aug. 16th, 2025": "2025-08-16",
    "16th of August 2025": "2025-08-16", "2025-08-16T10:00": "2025-08-16", "16 August[1] 2025": "2025-08-16",
    "16\u00a0August\u202f2025": "2025-08-16", "2025‑08‑16": "2025-08-16", "٢٠٢٥-٠٨-١٦": "2025-08-16",
    "16 August 2025 (2025-08-16)": "2025-08-16", "2019, updated 16 August 2025": "2025-08-16",
    "in February 2024": "2024-02-01 2024-02-29", "Sept. 2019": "2019-09-01 2019-09-30",
    "2025-08": "2025-08-01 2025-08-31", "since 1931": "1931-01-01 1931-12-31",
    "Berlin Marathon 2019": "2019-01-01 2019-12-31", "2019¹": "2019-01-01 2019-12-31", "①6 August 2025": None,
    "": None, "soon": None, "31 February 2024": None, "0000-01-01": None, "16/08/2025": None, "16.08.2025": None,
    "16 Aug 25": None, "2019-Q3": None, "14–16 August 2025": None, "August 16–18, 2025": None,
    "30 July – 16 August 2025": None, "16 August 2025 – 3 May 2026": None, "1250 people in 2019": None, "1990s": None,
    "1200 BC": None, "$1500": None,
}  # fmt: skip


def test_date_is_the_value_or_missing() -> None:
    for text, days in DATES.items():
        ends = [datetime.date.fromisoformat(day) for day in (days or "").split()]
        assert date_interval(text) == (Interval(ends[0], ends[-1]) if ends else None), text
    assert date_interval(None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("14 May 1962", True), ("2019", True), ("14 Mai 1962", False), ("Novel 2019", False), ("31 June 2019", False)],
)
def test_date_without_other_words(text: str, expected: bool) -> None:
    assert is_date(text) is expected


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("3.5 km", "5 km", False),
        ("3,5 km", "5 km", False),
        ("12,500 kr", "500 kr", False),
        ("12\u202f500 kr", "12500 kr", True),
        ("-5 °C", "5 °C", False),
        ("2½ hours", "2 hours", False),
        ("72¹ hours", "721 hours", False),
        ("v2.5", "5", False),
        ("16.08.2025", "2025", True),
        ("5–10 km", "10 km", True),
        ("in 2019 500 people", "500 people", True),
    ],
)
def test_a_part_of_a_number_is_not_a_word(text: str, part: str, expected: bool) -> None:
    assert has_words(text, part) is expected


@pytest.mark.parametrize("piece", ["1 000 ", "½", "1½", "-", "9:25 ", "5¹"])
def test_values_are_read_in_linear_time(piece: str) -> None:
    started = process_time()
    for read in (first_number, clock_minutes, date_interval):
        read(piece * (MAX_CHARS // len(piece)))
    spaced_words(piece * (200_000 // len(piece)))
    assert process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("day == '2025-08-17'", "'16 August 2025' == '2025-08-17'"),
        ("weight<=limit and  not sold", "3.5<=4 and not true"),
        ("given(best.price) or count(gauges.hours) > 1", "given(none) or count([96, none]) > 1"),
        ("'x' in tags", "'x' in []"),
    ],
)
def test_a_condition_is_written_with_the_values_of_its_fields(text: str, written: str) -> None:
    assert parse_condition(text, SCOPE).written(VALUES) == written
