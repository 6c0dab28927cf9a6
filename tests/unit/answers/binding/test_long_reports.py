# ruff: noqa: E501, RUF001 - forms on one line, punctuation of other scripts
"""Long reports in 34 forms, over 1,000 marks. The source and the statement of each mark are known by construction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from answers.binding import bind
from tests.unit.answers.binding.test_forms import bound

Numbers = Sequence[int]

ENGLISH = (
    "The port handled 4.2 million containers in 2023",
    "Dr. Alvarez led the survey of the U.S. coast from 1998 to 2004",
    "Prices rose by 3.5 percent, i.e. more than wages",
    "The ferry takes 25 minutes; the bridge is closed to trucks",
    "Its tower (built in 1764) is 61 m high",
    "“We did not expect this,” said a speaker of the council",
    "The **new terminal** opened on May 3 at 6 p.m. sharp",
    "About 40% of the visitors come from abroad",
    "The tide museum shows e.g. gauges, charts and a bell",
    "No other harbor in the region has a dry dock",
    "The law of 2021 limits noise to 55 dB at night",
    "Fish landings fell from 900 t to 640 t within ten years",
)
CHINESE = (
    "该港口2023年处理了420万个集装箱",
    "新码头于5月3日开放，可停靠两艘大船",
    "“我们没有料到”，发言人说",
    "约40%的游客来自国外",
    "2021年的法律将夜间噪音限制在55分贝以内",
    "塔高61米（建于1764年）",
    "渔获量在十年内从900吨下降到640吨",
    "该地区没有其他港口拥有干船坞",
)
JAPANESE = (
    "港は2023年に420万個のコンテナを扱った",
    "塔の高さは61メートルである",
    "訪問者の約40%は海外から来る",
    "新しいターミナルは5月3日に開いた",
    "2021年の法律は夜の騒音を55デシベルに制限する",
    "漁獲量は10年で900トンから640トンに減った",
)
AUTHORS = [
    "Zero",
    "Adler",
    "Brandt",
    "Castro",
    "Dubois",
    "Engel",
    "Ferrari",
    "Garcia",
    "Hansen",
    "Ivanov",
    "Jensen",
    "Keller",
    "Lopez",
    "Moreau",
]


@dataclass(frozen=True, kw_only=True)
class Form:
    """Form of marks and of the list of sources. ``end`` ends a sentence; ``after``: the mark follows it."""

    mark: Callable[[Numbers], str]
    entry: Callable[[int], str]
    title: str = "## References"
    separator: str = "\n"
    end: str = "."
    after: bool = False
    space: str = " "
    sentences: Sequence[str] = ENGLISH
    several: bool = True
    """Whether one mark may have several numbers."""
    table: bool = True
    has_list: bool = True


def url(number: int) -> str:
    return f"https://site-{number}.example/path_({number})?q=a&n={number}"


def name(number: int) -> str:
    return f"Report {number} of the harbor office"


def listed(numbers: Numbers) -> str:
    return ", ".join(map(str, numbers))


def square(numbers: Numbers) -> str:
    return f"[{listed(numbers)}]"


def adjacent(numbers: Numbers) -> str:
    return "".join(f"[{number}]" for number in numbers)


def superscript(numbers: Numbers) -> str:
    return ",".join(map(str, numbers)).translate(str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹⸴"))


FORMS: dict[str, Form] = {
    "url - title": Form(mark=square, entry=lambda n: f"[{n}] {url(n)} - {name(n)}", title="References:"),
    "title: url": Form(mark=square, entry=lambda n: f"{n}. {name(n)}: {url(n)}"),
    "title, url, after the full stop": Form(mark=square, entry=lambda n: f"[{n}] {name(n)}, {url(n)}", after=True),
    "adjacent": Form(mark=adjacent, entry=lambda n: f"[{n}] {name(n)}. {url(n)}", space=""),
    "adjacent after the full stop": Form(mark=adjacent, entry=lambda n: f"[{n}]: {url(n)}", after=True, space=""),
    "linked entries": Form(mark=square, entry=lambda n: f"{n}. [{name(n)}]({url(n)})", title="**Sources**"),
    "bulleted entries": Form(mark=square, entry=lambda n: f"- [{n}] {name(n)}: <{url(n)}>", title="### Works Cited"),
    "two-line entries": Form(mark=square, entry=lambda n: f"[{n}] {name(n)}\n    {url(n)}", title="# Bibliography"),
    "entries with a date": Form(
        mark=square, entry=lambda n: f"{n}. {name(n)}, accessed June 1, 2025, {url(n)}", title="#### **Works cited**"
    ),
    "quoted titles": Form(mark=square, entry=lambda n: f'[{n}] J. Doe, "{name(n)}," 2023. Available: {url(n)}'),
    "round entries": Form(mark=lambda ns: f"({listed(ns)})", entry=lambda n: f"({n}) {name(n)}. {url(n)}", table=False),
    "closing bracket entries": Form(mark=square, entry=lambda n: f"{n}) {name(n)} {url(n)}", title="Sources:"),
    "superscripts": Form(
        mark=superscript, entry=lambda n: f"{n}. {name(n)} {url(n)}", space="", after=True, table=False
    ),
    "sup elements": Form(
        mark=lambda ns: f"<sup>{listed(ns)}</sup>", entry=lambda n: f"<sup>{n}</sup> {name(n)} {url(n)}", space=""
    ),
    "sup elements with brackets": Form(
        mark=lambda ns: f"<sup>[{listed(ns)}]</sup>", entry=lambda n: f"{n}. {name(n)}: {url(n)}", space=""
    ),
    "ranges": Form(
        mark=lambda ns: f"[{ns[0]}–{ns[-1]}]" if len(ns) > 1 else f"[{ns[0]}]",
        entry=lambda n: f"[{n}] {name(n)} {url(n)}",
    ),
    "semicolons": Form(mark=lambda ns: f"[{'; '.join(map(str, ns))}]", entry=lambda n: f"[{n}] {name(n)} {url(n)}"),
    "daggers": Form(
        mark=lambda ns: "".join(f"【{n}†source】" for n in ns), entry=lambda n: f"【{n}】 {name(n)} {url(n)}", space=""
    ),
    "footnotes": Form(
        mark=lambda ns: "".join(f"[^{n}]" for n in ns), entry=lambda n: f"[^{n}]: {name(n)}. {url(n)}", title="---"
    ),
    "footnotes after the full stop": Form(
        mark=lambda ns: "".join(f"[^{n}]" for n in ns),
        entry=lambda n: f"[^{n}]: [{name(n)}]({url(n)})",
        after=True,
        space="",
        title="",
    ),
    "links with the number": Form(
        mark=lambda ns: " ".join(f"[[{n}]]({url(n)})" for n in ns), entry=lambda n: f"{n}. {name(n)}: {url(n)}"
    ),
    "links with the title": Form(mark=lambda ns: f"([{name(ns[0])}]({url(ns[0])}))", entry=str, title="", several=False, has_list=False),
    "bare addresses": Form(mark=lambda ns: f"({url(ns[0])})", entry=str, title="", several=False, has_list=False),
    "escaped brackets": Form(
        mark=lambda ns: f"\\[{listed(ns)}\\]", entry=lambda n: f"\\[{n}\\] {name(n)} {url(n)}"
    ),
    "named sources": Form(
        mark=lambda ns: f"[Source {ns[0]}]", entry=lambda n: f"Source {n}: {name(n)}, {url(n)}", several=False
    ),
    "labels": Form(mark=lambda ns: f"[{', '.join(f'S{n}' for n in ns)}]", entry=lambda n: f"- S{n}: {name(n)} {url(n)}"),
    "plain numbers": Form(
        mark=lambda ns: ",".join(map(str, ns)),
        entry=lambda n: f"{n}. {name(n)}, accessed May 2, 2025, {url(n)}",
        after=True,
        space="",
        table=False,
    ),
    "author and year": Form(
        mark=lambda ns: f"({'; '.join(f'{AUTHORS[n]}, {2000 + n}' for n in ns)})",
        entry=lambda n: f"{AUTHORS[n]}, J. ({2000 + n}). {name(n)}. {url(n)}",
        separator="\n\n",
        table=False,
    ),
    "table of sources": Form(
        mark=square, entry=lambda n: f"| {n} | {name(n)} | {url(n)} |", title="## Sources\n\n| No. | Title | URL |\n|---|---|---|"
    ),
    "Chinese": Form(
        mark=adjacent, entry=lambda n: f"[{n}] {name(n)}：{url(n)}", title="## 参考文献", end="。", space="", sentences=CHINESE
    ),
    "Chinese after the full stop": Form(
        mark=square, entry=lambda n: f"{n}. {name(n)}：{url(n)}", title="**参考资料**", end="。", space="", after=True, sentences=CHINESE
    ),
    "Chinese brackets": Form(
        mark=lambda ns: "".join(f"【{n}】" for n in ns), entry=lambda n: f"【{n}】{name(n)}，{url(n)}", title="资料来源：", end="。", space="", sentences=CHINESE
    ),
    "Chinese plain numbers": Form(
        mark=listed, entry=lambda n: f"{n}. {name(n)}， 访问时间为 六月 1, 2025， {url(n)}", title="#### **引用的著作**", end="。", sentences=CHINESE, table=False
    ),
    "Japanese": Form(
        mark=adjacent, entry=lambda n: f"[{n}] {name(n)} {url(n)}", title="## 参考文献", end="。", space="", sentences=JAPANESE
    ),
}  # fmt: skip
SOURCES = 13


@dataclass
class Report:
    text: str = ""
    expected: list[tuple[str, str, str]] = field(default_factory=list)
    """Mark, URL and statement of each pair of mark and source."""


def build(form: Form, seed: str) -> Report:
    """Return a report with paragraphs, a list, a table and headings, in which each source is cited."""
    random = Random(seed)
    report = Report()
    order = [[number] for number in range(1, SOURCES + 1)]
    if form.several:
        order += [sorted({start, min(SOURCES, start + 1)}) for start in (2, 5, 8, 11)]
    order += [[random.randint(1, SOURCES)] for _ in range(10)]
    sentences = [form.sentences[index % len(form.sentences)] for index in range(len(order))]
    written = []
    for sentence, numbers in zip(sentences, order, strict=True):
        mark = form.mark(numbers)
        text = f"{sentence}{form.end}{form.space}{mark}" if form.after else f"{sentence}{form.space}{mark}{form.end}"
        written.append((text, mark, numbers))
    gap = "" if form.end == "。" else " "
    parts = ["# The harbor\n\n"]
    for index, (text, mark, numbers) in enumerate(written):
        in_list = 9 <= index < 13
        in_row = form.table and index in (15, 16)
        if in_row:
            text = f"| Row {index} | {len(parts)} units {mark} |"
            parts.append("\n\n| Name | Size |\n|---|---|\n" if index == 15 else "")
            parts.append(text + "\n" + ("\n## More\n\n" if index == 16 else ""))
        elif in_list:
            parts.append(("\n\n" if index == 9 else "") + f"- {text}\n" + ("\n" if index == 12 else ""))
        else:
            parts.append(text + ("\n\n## Part\n\n" if index % 5 == 4 else gap))
        report.expected += [(mark, url(number), text) for number in numbers]
    title = form.title + ("\n" if form.title.endswith("|") else "\n\n")
    entries = form.separator.join(map(form.entry, range(1, SOURCES + 1))) if form.has_list else ""
    report.text = f"{''.join(parts).rstrip()}\n\n{title}{entries}\n"
    return report


@pytest.mark.parametrize("form", FORMS)
def test_every_mark_has_its_source_and_statement(form: str):
    report = build(FORMS[form], form)
    found = bound(report.text)
    assert [(each[1], each[2].strip()) for each in found] == [(each[1], each[2]) for each in report.expected]
    for (mark, _, _), (written, _, _) in zip(found, report.expected, strict=True):
        assert mark in written


def test_titles_of_lists_are_found():
    for form in FORMS:
        binding = bind(build(FORMS[form], form).text)
        titles = {source.url: re.sub(r"^J\. Doe, |[\"“]|,? 2023$", "", source.title) for source in binding.sources}
        if form not in {"adjacent after the full stop", "bare addresses", "author and year", "quoted titles"}:
            assert titles[url(3)] == name(3), form
