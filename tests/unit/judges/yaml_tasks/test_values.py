# ruff: noqa: RUF001 - the tests use the signs and digits of other scripts
from __future__ import annotations

import datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.yaml_tasks.expressions import has_words
from judges.yaml_tasks.values import (
    MAX_CHARS,
    Interval,
    clock_minutes,
    date_interval,
    first_number,
    is_date,
    normalized,
    spaced_words,
)

NUMBERS = {
    "1,250.50 crowns": 1250.5, "no. 7.": 7, "none": None, "9" * 400: None, "1871.": 1871, "5, 6": 5, "`5`": 5,
    "US$5": 5, "+5": 5,
    # fractions
    "2½ hours": 2.5, "2 ½ hours": 2.5, "½ hour": 0.5, "-2½": -2.5, "⅔ cup": 2 / 3, "1,250¼": 1250.25, "2.5½": None,
    "1/2": None, "2 1/2 hours": None, "1⁄2": None, "2 and a half hours": None, "2 hours and a half": None,
    # footnotes and powers
    "72¹ hours": 72, "72¹² hours": 72, "72[1] hours": 72, "72 hours¹": 72, "5¹": 5, "10² m": None, "2³": None,
    "3 × 10⁸": None, "1.5·10⁸": None, "10⁻³": None, "10^6": None, "1.5e8": None, "1e-6": None, "[1] 72 hours": None,
    "12¹ 500 people": None, "12[1] 500 people": None, "5 m²": 5,
    # marks of thousands
    "12 500 kr": 12500, "1'250": 1250, "1’250": 1250, "1\u00a0250\u00a0000": 1250000, "12\u202f500": 12500,
    "12\u2009500": 12500, "١٬٢٥٠": 1250, "1 250.5": 1250.5, "12\n500": None, "12\t500": None, "2019 500 people": None,
    "5 10": None, "1_250": None, "1`250": None, "1,25,000": None, "1,250 500": None,
    # decimals
    ".5 kg": 0.5, "-.5": -0.5, "12,5 kg": None, "1.250,50": None, "1 250,50": None, "1.250.000": None, "0,250": None,
    "٣٫٥": 3.5, "3·5": None, "no.5": None, ",5 kg": None,
    # names
    "COVID-19": None, "B-52": None, "F-16": None, "ISO-9001": None, "747-400": None, "H2O": None, "v2.5": None,
    "3D": None, "5G": None, "+49 30 123": None, "192.168.0.1": None,
    # signs
    "about -3 degrees": -3, "–5 °C": -5, "—5 °C": -5, "−5 °C": -5, "‐5 °C": -5, "‑5 °C": -5, "﹣5 °C": -5, "－5": -5,
    "-$5": -5, "$-5": -5, "-US$5": -5, "-EUR 5": -5, "minus 5": -5, "- 5": None, "Low – 5 °C": None, "Total-$5": None,
    # ranges and calculations
    "5–10 km": None, "5-10 km": None, "5 – 10 km": None, "5 to 10": None, "5 km–10 km": None, "$5–$10": None,
    "5%-10%": None, "5 or 6": None, "5x10": None, "5 × 10 m": None, "9:25": None, "4/5": None, "5'10\"": None,
    "12°30'": None, "2025-08-16": None,
    # units and multiples
    "5km": 5, "72h": 72, "12V": 12, "25%": 25, "25 %": 25, "25 °C": 25, "5㎞": 5, "5m": 5, "1st": 1,
    "5-star": 5, "1.5 million": None, "2 Millionen": None, "5 hundred": None, "5k": None, "5 K": None, "$5m": None,
    "$1.2bn": None, "5 millimetres": 5, "5 miles": 5, "5万": None,
    # digits
    "１２５０": 1250, "१२५०": 1250, "๑๒๕๐": 1250, "۱۲۵۰": 1250, "𝟏𝟐": 12,
    "1②": None, "5–①0 km": None, "12 ⑤00": None, "Ⅳ 5": None, "五 5": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NUMBERS.items())
def test_number_is_the_value_or_missing(text: str, expected: float | None) -> None:
    assert first_number(text) == expected


TIMES = {
    "at 9:25": 565, "9:25 p.m.": 1285, "9:25PM": 1285, "9:25 p. m.": 1285, "9:25\u00a0PM": 1285, "9:25\u202fPM": 1285,
    "9:25\u2009PM": 1285, "9:25 ＰＭ": 1285, "9：25 pm": 1285, "9:25 (PM)": 1285, "9:25[1] pm": 1285, "٩:٢٥": 565,
    "12:05 am": 5, "12:00 noon": 720, "0:30": 30, "9:25:30 pm": 1285.5, "2025-08-16T09:25": 565, "9:25h": 565,
    "8:40, arrives 9:25": 520,
    "25:00": None, "24:00": None, "9:60": None, "13:25 am": None, "0:30 pm": None, "noon": None, "12 am": None,
    "9.25 pm": None, "9:25–10:00": None, "9–10:30": None, "9:25 to 10:00 pm": None, "UTC-9:30": None, "+05:30": None,
    "9:25p": None, "pm 9:25": None, "9:25 am/pm": None, "9:25 in the evening": None, "tonight at 9:25": None,
    "12:00 midnight": None, "下午9:25": None, "9:25½": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_minutes_are_the_value_or_missing(text: str, expected: float | None) -> None:
    assert clock_minutes(text) == expected


DATES = {
    "on 2025-08-16.": "2025-08-16", "Saturday, 16 August 2025": "2025-08-16", "Aug. 16th, 2025": "2025-08-16",
    "16th of August 2025": "2025-08-16", "16ᵗʰ August 2025": "2025-08-16", "2025-08-16T10:00": "2025-08-16",
    "16 August¹ 2025": "2025-08-16", "16 August[1] 2025": "2025-08-16", "16¹ August 2025": "2025-08-16",
    "16\u00a0August\u202f2025": "2025-08-16", "16\u2009August 2025": "2025-08-16", "2025‑08‑16": "2025-08-16",
    "2025–08–16": "2025-08-16", "٢٠٢٥-٠٨-١٦": "2025-08-16", "16 August 2025 (2025-08-16)": "2025-08-16",
    "2019, updated 16 August 2025": "2025-08-16",
    "in February 2024": "2024-02-01 2024-02-29", "Sept. 2019": "2019-09-01 2019-09-30",
    "2025-08": "2025-08-01 2025-08-31",
    "since 1931": "1931-01-01 1931-12-31", "Berlin Marathon 2019": "2019-01-01 2019-12-31",
    "Novel 2019": "2019-01-01 2019-12-31", "2 mayors 2019": "2019-01-01 2019-12-31",
    "Decade 2019": "2019-01-01 2019-12-31",
    "2019¹": "2019-01-01 2019-12-31", "2019[1]": "2019-01-01 2019-12-31",
    "5000 people in 2019": "2019-01-01 2019-12-31",
    # no date, or none that exists
    "①6 August 2025": None, "1⑥ August 2025": None, "④ August 2025": None,
    "": None, "soon": None, "31 February 2024": None, "0000-01-01": None, "12345": None, "2024-13-01": None,
    # other forms, of which only a part could be read
    "16/08/2025": None, "2025/08/16": None, "16.08.2025": None, "16 08 2025": None, "08/2025": None, "16 Aug 25": None,
    "16-Aug-2025": None, "2025 August 16": None, "2019-Q3": None, "2025-8-16": None,
    # ranges and several dates
    "14–16 August 2025": None, "14 and 16 August 2025": None, "August 16–18, 2025": None, "2011–12": None,
    "30 July – 16 August 2025": None, "16 August 2025 – 3 May 2026": None, "1931–1935": None, "1931 to 1935": None,
    "1250 people in 2019": None, "1990s": None,
    # no year
    "1200 BC": None, "RFC2119": None, "$1500": None, "#2019": None, "1,2019": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "days"), DATES.items())
def test_date_is_the_value_or_missing(text: str, days: str | None) -> None:
    ends = [datetime.date.fromisoformat(day) for day in (days or "").split()]
    assert date_interval(text) == (Interval(ends[0], ends[-1]) if ends else None)
    assert date_interval(None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("14 May 1962", True), ("2019", True), ("14 Mai 1962", False), ("Novel 2019", False), ("31 June 2019", False)],
)
def test_date_without_other_words(text: str, expected: bool) -> None:
    assert is_date(text) is expected


SPACES = " \u00a0\u2007\u2009\u200a\u202f\u3000\u200b\t\n"
DASHES = "-\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2796\ufe58\ufe63\uff0d"
APOSTROPHES = "'‘’‛ʼ′´＇`"
ZEROS = [ord(zero) for zero in "0٠۰०০๐０𝟎"]


def _written(char: str) -> st.SearchStrategy[str]:
    """Return the other ways to write a character."""
    if char.isdigit():
        return st.sampled_from([chr(zero + int(char)) for zero in ZEROS])
    others = next((each for each in (SPACES, DASHES, APOSTROPHES) if char in each), char)
    return st.sampled_from(others)


FORMS = st.one_of(
    st.from_regex(r"[-–]?[1-9][0-9]{0,2}([ ,'][0-9]{3}){0,2}(\.[0-9]{1,2})?[½¼]?( kg|km|%| °C)?", fullmatch=True),
    st.from_regex(r"\A[0-9]{1,2}[-–][0-9]{1,3} km|[A-Z]{1,5}-[0-9]{1,4}|[0-9] - [0-9]|- [0-9]\Z", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}:[0-5][0-9]( ?[ap]m| [ap]\.m\.| - [0-9]:[0-9]{2}|:[0-5][0-9] pm)?", fullmatch=True),
    st.from_regex(
        r"([0-9]{1,2} )?(May|March|Aug\.|September) [12][0-9]{3}|[12][0-9]{3}-[01][0-9]-[0-3][0-9]", fullmatch=True
    ),
    st.from_regex(
        r"[12][0-9]{3}([- ][0-9]{2,4})?|(Novel|May|mayors) [0-9]{1,2}(-[0-9]{1,2})?,? [12][0-9]{3}", fullmatch=True
    ),
)


@given(st.data(), FORMS)
def test_other_spaces_dashes_apostrophes_and_digits_give_the_same_value_or_none(data: st.DataObject, text: str) -> None:
    other = "".join(data.draw(_written(char)) for char in text)
    for read in (first_number, clock_minutes, date_interval):
        value, plain = read(other), read(text)
        assert value is None or value == plain, (read.__name__, text, other)


@given(
    st.from_regex(r"[1-9][0-9]{0,3}(\.[0-9])?", fullmatch=True), st.sampled_from(["{} km", "({})", "~{}", "about {}."])
)
def test_plain_number_is_read_in_every_script(number: str, context: str) -> None:
    for zero in ZEROS:
        written = number.translate({ord(str(digit)): zero + digit for digit in range(10)})
        assert first_number(context.format(written)) == float(number)


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("3.5 km", "5 km", False),
        ("3.5 km", "3.5 KM", True),
        ("3.5km", "5km", False),
        ("3,5 km", "5 km", False),
        ("12,500 kr", "500 kr", False),
        ("12 500 kr", "500 kr", False),
        ("12\u202f500 kr", "12500 kr", True),
        ("1’250 m", "1'250 m", True),
        ("-5 °C", "5 °C", False),
        ("-5 °C", "-5 °C", True),
        ("2½ hours", "2 hours", False),
        ("2½ hours", "21", False),
        ("2½ hours", "2 ½ hours", True),
        ("72¹ hours", "721 hours", False),
        ("v2.5", "5", False),
        ("16.08.2025", "2025", True),
        ("COVID-19", "covid", True),
        ("5–10 km", "10 km", True),
        ("rooms 1,2,3", "2", True),
        ("in 2019 500 people", "500 people", True),
        ("It is 9.5.", "9.5", True),
        ("25 m²", "25 m2", True),
    ],
)
def test_a_part_of_a_number_is_not_a_word(text: str, part: str, expected: bool) -> None:
    assert has_words(text, part) is expected


@pytest.mark.parametrize(("one", "other"), [("72¹", "721"), ("10²", "102"), ("2½", "21⁄2"), ("¹72", "172")])
def test_raised_digits_are_not_digits_of_the_number(one: str, other: str) -> None:
    assert normalized(one) != normalized(other)


@pytest.mark.parametrize(
    "piece", ["1 000 ", "1,000,", "1.", "½", "1½", "1 ", "-", "1 May ", "2019 and ", "9:25 ", "5¹", "minus ", "1\u2009"]
)
def test_values_are_read_in_linear_time(piece: str) -> None:
    started = process_time()
    for read in (first_number, clock_minutes, date_interval):
        read(piece * (MAX_CHARS // len(piece)))
    spaced_words(piece * (200_000 // len(piece)))
    assert process_time() - started < 5
