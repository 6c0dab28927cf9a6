from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.yaml_tasks.expressions import (
    ExpressionError,
    ListOf,
    Record,
    Scalar,
    Variable,
    parse_condition,
    parse_expression,
    parse_template,
)
from judges.yaml_tasks.values import as_text

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
        ("given(name, tags)", False),
        ("given(best)", True),
        ("given(best.price)", False),
        ("name == 'ida norrstad'", True),
        ("year == '18715'", False),
        ("name != 'Tobias Quell'", True),
        ("best.price != 'anything'", False),  # missing: every comparison is false, also under `not`
        ("not (best.price == 'anything')", False),
        ("not (best.hours > 5)", False),
        ("not (number(name) > 5)", False),
        ("not within(best.hours, 1, 2)", False),
        ("not contains(best.price, 'crowns')", False),
        ("not matches(best.price, 'x')", False),
        ("not (best.price in ['a', 'b'])", False),
        ("not (name in tags)", False),
        ("(best.hours > 5) == false", False),
        ("not (best.hours > 5 and weight > 9)", True),
        ("not (best.hours > 5 or weight > 9)", False),
        ("best.hours > 5 or weight > 1", True),
        ("not given(best.hours)", True),
        ("not (weight > 9)", True),
        ("weight < limit", True),
        ("weight >= -1 and not (weight > 3.5 or sold == false)", True),
        ("within(weight, 3, 4)", True),
        ("within(number(best.price), 0, 9999)", False),
        ("number(year) == 1871", True),
        ("count(gauges) == 2", True),
        ("count(gauges.urls) == 3", True),
        ("count(gauges.price) == 1", True),
        ("count(unique(gauges.name)) >= 2", True),
        ("day < '2025-09-01'", True),
        ("day < date('August 2025')", False),
        ("within(day, '2025-01-01', '2025-12-31')", True),
        ("date(year) < day", True),
        ("year in ['1870', '1871']", True),
        ("matches(year, '\\d{4}')", True),
        ("matches(year, '18')", False),
        ("contains(name, 'ida')", True),
        ("contains(name, 'norr')", False),
        ("minutes('9:25') < minutes('10:00 am')", True),
        ("words(name) <= 2", True),
        ("sold", True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert parse_condition(text, SCOPE).evaluate(VALUES) is expected


@pytest.mark.parametrize("part", ["walden pond", "the end"])
def test_words_are_found_anywhere_in_a_long_answer(part: str) -> None:
    answer = "\n".join(["It rains.", *["More words." for _ in range(20_000)], "Walden\u00a0POND", "The end"])
    for text, expected in [(f"contains(answer, '{part}')", True), ("words(answer) == 40006", True)]:
        condition = parse_condition(text, {"answer": Variable(Scalar.TEXT)})
        assert condition.evaluate({"answer": answer}) is expected
    condition = parse_condition("contains(answer, 'den pond')", {"answer": Variable(Scalar.TEXT)})
    assert condition.evaluate({"answer": answer}) is False


def test_find_returns_the_item_with_the_words_and_else_an_empty_record() -> None:
    assert parse_expression("find(gauges, 'name', 'KESTREL 4')", SCOPE).evaluate(VALUES) == KESTREL
    assert parse_expression("find(gauges, 'name', 'Kestrel')", SCOPE).evaluate(VALUES) == KESTREL
    missing = parse_expression("find(gauges, 'name', 'Kestrel 40')", SCOPE).evaluate(VALUES)
    assert missing == {"name": "", "price": "", "hours": None, "urls": []}


@pytest.mark.parametrize(("number", "name"), [(1, "Kestrel 4"), (2, "Heron 2"), (3, ""), (0, ""), (-1, "")])
def test_item_counts_from_one_and_is_empty_outside_of_the_list(number: int, name: str) -> None:
    assert parse_expression(f"item(gauges, {number})", SCOPE).evaluate(VALUES)["name"] == name


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("nme == 'x'", 0, "no field 'nme' (did you mean 'name'?); the fields here are name, year"),
        ("best.prise == 'x'", 5, "best has no field 'prise' (did you mean 'price'?); it has name, price, hours, urls"),
        ("name.__class__ == 'x'", 5, "name is a text and has no fields"),
        ("best.__class__ == 'x'", 5, "best has no field '__class__'"),
        ("__import__('os')", 0, "no function '__import__'; the functions are contains, count"),
        ("exec(name)", 0, "no function 'exec'"),
        ("name.upper()", 5, "has no fields"),
        ("lambda: 1", 6, "unexpected ':'"),
        ("name", 0, "this is a text, not a condition; use given(name)"),
        ("given(name", 10, "expected ',', found the end"),
        ("given()", 0, "write given(value, ...)"),
        ("name < 'x'", 5, "`<` compares numbers or dates"),
        ("name == 3", 8, "cannot compare text with number; use number(...)"),
        ("day == 'soon'", 7, "compare a date with a date"),
        ("day < '14 Mai 1962'", 6, "compare a date with a date"),
        ("day < date('14 Mai 1962')", 11, "'14 Mai 1962' is not an English date"),
        ("day < date('Berlin Marathon 2019')", 11, "is not an English date"),
        ("day < date('31 February 2024')", 11, "is not an English date"),
        ("number('COVID-19') < weight", 7, "'COVID-19' is not a number"),
        ("minutes('25:00') < weight", 8, "'25:00' is not a time"),
        ("within(weight, 89, 86)", 15, "no value is in this range"),
        ("within(weight, -1, -2)", 15, "no value is in this range"),
        ("within(weight, minutes('9:25 pm'), minutes('8:40'))", 23, "no value is in this range"),
        ("within(day, '2025-12-31', '2025-01-01')", 12, "no value is in this range"),
        ("within(day, date('May 2025'), date('2024'))", 17, "no value is in this range"),
        ("1 < weight < 3", 11, "compare two values at a time"),
        ("name == 'x", 8, "close the quote"),
        ("name ; year", 5, "unexpected ';'"),
        ("name and sold", 0, "must be boolean, this is text"),
        ("matches(name, year)", 14, "is a pattern in quotes"),
        ("matches(name, '(?=a)')", 14, "look-around"),
        ("matches(name, '(a')", 14, "unclosed group"),
        ("matches(name, '" + "a" * 201 + "')", 14, "longer than 200 characters"),
        ("find(gauges, 'nme', name)", 13, "a text field in quotes: name, price"),
        ("count(name)", 6, "count does not take a text"),
        ("(" * 30 + "sold" + ")" * 30, 21, "nested more than 20 levels"),
        ("not " * 30 + "sold", 84, "nested more than 20 levels"),
        ("sold or " * 200 + "sold", 0, "longer than 1000 characters"),
        ("", 0, "found the end"),
        ("name in []", 8, "an empty list"),
        ("name in ['a', 3]", 14, "all of one type"),
        ("sold sold", 5, "unexpected 'sold'"),
        ("name == “x”", 8, "write straight quotes: 'text'"),
        ("sold AND sold", 5, "write `and` in lower case"),
        ("sold && sold", 5, "write `and`"),
        ("sold || sold", 5, "write `or`"),
        ("! sold", 0, "write `not`"),
        ("year + 1 == 2", 5, "expressions do not calculate"),
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
        ("about {}", 6, "{} names no field"),
        ("about {0}", 6, "{0} names no field"),
        ("about {name!r}", 6, "names no field"),
        ("about {name:>10}", 6, "names no field"),
        ("about {best[name]}", 6, "names no field"),
        ("about {given(name)}", 6, "names no field"),
        ("about {name.__class__}", 12, "name is a text and has no fields"),
        ("about {best.__class__.__init__}", 12, "best has no field '__class__'"),
        ("about {title}", 7, "no field 'title'"),
        ("about {best}", 7, "is a record; name one of its fields"),
        ("about {name", 6, "a single brace"),
        ("about name}", 10, "a single brace"),
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


def test_whole_numbers_have_no_decimal_places() -> None:
    assert as_text([3.0, 3.25, 10**6, True, None]) == "3, 3.25, 1000000, yes, "


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
