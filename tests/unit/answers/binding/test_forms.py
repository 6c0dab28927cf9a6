# ruff: noqa: E501, RUF001 - reports on one line, with punctuation of other scripts
"""Small reports in every form of marks and lists, with the expected marks: ``(mark, url or None, statement)``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from answers.binding import bind, without_product_marks

A = "https://a.example/x"
B = "https://b.example/y?q=1"
C = "https://c.example/z_(1)"

LIST = f"\n\n## References\n\n[1] {A} - Title A\n[2] {B} - Title B\n[3] {C} - Title C\n"


def bound(report: str) -> list[tuple[str, str | None, str]]:
    """Return mark, URL and statement of each pair. Adjacent marks, such as ``[1][2]``, are joined."""
    binding = bind(report)
    return [
        (
            report[mark.start : mark.end],
            None if mark.source is None else binding.sources[mark.source].url,
            report[mark.statement_start : mark.statement_end],
        )
        for mark in binding.marks
    ]


@pytest.mark.parametrize(
    "mark",
    [
        "\ue200cite\ue202turn0search1\ue202turn2view0\ue201",
        "citeturn0search3turn1news2",
        "[turn0search1, turn0news2]",
        "【oaicite:4】",
        ":contentReference[oaicite:0]{index=0}",
        '<grok:render card_id="1"><argument name="citation_id">3</argument></grok:render>',
        "</cite>",
        "</co: 0,1>",
    ],
)
def test_marks_of_products_are_unbound_and_can_be_removed(mark: str) -> None:
    opening = {"</cite>": '<cite index="1-2">', "</co: 0,1>": "<co: 0,1>"}.get(mark, "[cite_start]")
    report = f"{opening}Oslo grew.{mark} It rained ([site]({A}))."
    assert bound(report)[0] == (mark, None, f"{opening}Oslo grew.{mark}")
    assert without_product_marks(report) == f"Oslo grew. It rained ([site]({A}))."


def test_list_at_the_end_that_repeats_the_links_of_a_report_is_no_source_of_its_last_section() -> None:
    report = f"## A\n\nOslo grew ([a]({A})).\n\n## Conclusion\n\nAll is well.\n\n**Sources:**\n- {A}\n- {B}\n"
    assert [statement for _, _, statement in bound(report)] == [f"Oslo grew ([a]({A}))."]
    assert [source.url for source in bind(report).unused()] == [B]


DOCUMENTS = {
    "[report.pdf, p. 15]": ("report.pdf", "15"),
    "[report.pdf p.15]": ("report.pdf", "15"),
    "[report.pdf:15]": ("report.pdf", "15"),
    "[Annual Report 2024.docx, pp. 3–4]": ("Annual Report 2024.docx", "3–4"),
    "(see data.xlsx, sheet 2)": ("data.xlsx", "2"),
    "【年报.pdf，第15页】": ("年报.pdf", "15"),
    "【report.pdf†L1-L5】": ("report.pdf", ""),
}


@pytest.mark.parametrize("mark", DOCUMENTS)
def test_documents_are_sources_and_their_pages_are_kept(mark: str) -> None:
    [found] = (binding := bind(f"It rained {mark}.\n")).marks
    assert (binding.sources[found.source or 0].title, found.page) == DOCUMENTS[mark]
    [found] = (binding := bind(f"It rained {mark}.\n\n## Sources\n\n- {DOCUMENTS[mark][0]}: {A}\n")).marks
    assert (binding.sources[found.source or 0].url, found.page) == (A, DOCUMENTS[mark][1])


REPORTS: dict[str, tuple[str, list[tuple[str, str | None, str]]]] = {
    "circled digits": (
        "It opened in 1998①. It has two halls②③.\n\n① https://a.example/1\n② https://a.example/2\n③ https://a.example/3\n",
        [
            ("①", "https://a.example/1", "It opened in 1998①."),
            ("②③", "https://a.example/2", "It has two halls②③."),
            ("②③", "https://a.example/3", "It has two halls②③."),
        ],
    ),
    "circled digits that enumerate": (
        "使用方法：①打开 ②关闭。 See https://a.example/1 now.\n",
        [
            ("https://a.example/1", "https://a.example/1", "See https://a.example/1 now."),
        ],
    ),
    "internal marks of products": (
        "Oslo grew.\ue200cite\ue202turn0search1\ue202turn2view0\ue201 Bergen did not. citeturn0search3turn1news2\n\n"
        "It rained :contentReference[oaicite:0]{index=0}. We cite turn signals, and citeturns are no word.【oaicite:4】\n",
        [
            (
                "\ue200cite\ue202turn0search1\ue202turn2view0\ue201",
                None,
                "Oslo grew.\ue200cite\ue202turn0search1\ue202turn2view0\ue201",
            ),
            ("citeturn0search3turn1news2", None, "Bergen did not. citeturn0search3turn1news2"),
            (":contentReference[oaicite:0]{index=0}", None, "It rained :contentReference[oaicite:0]{index=0}."),
            ("【oaicite:4】", None, "We cite turn signals, and citeturns are no word.【oaicite:4】"),
        ],
    ),
    "plain numbers, as in copies that lost their superscripts": (
        "Heat is a third of demand.1 In 2023, sales fell by 3 percent to 5 million.2 Phase 3 ended in 2021. See Table 2.\n\n"
        "* Costs range to €1,200 per kW.3 Costs fell by 2.\n* Units reach 160 °C.4, 5 It takes 2.5 years.6 See No.3 or p.4\n\n"
        '| Germany | 356,000 7 |\n|---|---|\n| France | 51% 8 |\n\n"A turning point," said one.8 It may triple 1, or not 2.\n\n'
        "#### Works cited\n\n"
        + "".join(f"{n}. Title {n}, accessed June 1, 2025, https://a.example/{n}\n" for n in range(1, 9)),
        [
            ("1", "https://a.example/1", "Heat is a third of demand.1"),
            ("2", "https://a.example/2", "In 2023, sales fell by 3 percent to 5 million.2"),
            ("3", "https://a.example/3", "Costs range to €1,200 per kW.3"),
            ("4, 5", "https://a.example/4", "Units reach 160 °C.4, 5"),
            ("4, 5", "https://a.example/5", "Units reach 160 °C.4, 5"),
            ("6", "https://a.example/6", "It takes 2.5 years.6"),
            ("7", "https://a.example/7", "| Germany | 356,000 7 |"),
            ("8", "https://a.example/8", "| France | 51% 8 |"),
            ("8", "https://a.example/8", '"A turning point," said one.8'),
            ("1", "https://a.example/1", "It may triple 1, or not 2."),
            ("2", "https://a.example/2", "It may triple 1, or not 2."),
        ],
    ),
    "labels": (
        f"Water is wet [S1]. Ice [S1, S2]. Fire [Vaswani2017]. Air <cite>id_4</cite>. [S9]\n\n## Sources\n\n- S1: {A}\n"
        f"- [S2] Title B {B}\n[Vaswani2017] Title C. {C}\n[id_4] https://d.example/\n",
        [
            ("[S1]", A, "Water is wet [S1]."),
            ("[S1, S2]", A, "Ice [S1, S2]."),
            ("[S1, S2]", B, "Ice [S1, S2]."),
            ("[Vaswani2017]", C, "Fire [Vaswani2017]."),
            ("<cite>id_4</cite>", "https://d.example/", "Air <cite>id_4</cite>."),
        ],
    ),
    "mark after the full stop": (
        f"Water is wet. [1] Ice is cold.[2] Fire is hot.{LIST}",
        [("[1]", A, "Water is wet. [1]"), ("[2]", B, "Ice is cold.[2]")],
    ),
    "list, range and adjacent marks": (
        f"One [1, 3]. Two [1-3]. Three [2–3]. Four [1][2]. Five [1], [3].{LIST}",
        [
            ("[1, 3]", A, "One [1, 3]."),
            ("[1, 3]", C, "One [1, 3]."),
            ("[1-3]", A, "Two [1-3]."),
            ("[1-3]", B, "Two [1-3]."),
            ("[1-3]", C, "Two [1-3]."),
            ("[2–3]", B, "Three [2–3]."),
            ("[2–3]", C, "Three [2–3]."),
            ("[1]", A, "Four [1][2]."),
            ("[2]", B, "Four [1][2]."),
            ("[1]", A, "Five [1], [3]."),
            ("[3]", C, "Five [1], [3]."),
        ],
    ),
    "footnotes": (
        f"Water is wet.[^1] Ice is cold[^note].\n\n[^1]: Title A, {A}\n[^note]:\n    Title B.\n    {B}\n",
        [("[^1]", A, "Water is wet.[^1]"), ("[^note]", B, "Ice is cold[^note].")],
    ),
    "superscript tags": (
        f"Water is wet.<sup>1</sup> Ice is cold<sup>[2]</sup>. About 3 m<sup>2</sup>.{LIST}",
        [("<sup>1</sup>", A, "Water is wet.<sup>1</sup>"), ("<sup>[2]</sup>", B, "Ice is cold<sup>[2]</sup>.")],
    ),
    "inline links": (
        f"Water is wet ([Title A]({A})). According to [B]({B}), ice is cold. Fire is hot. ([C]({C}))",
        [
            (f"[Title A]({A})", A, f"Water is wet ([Title A]({A}))."),
            (f"[B]({B})", B, f"According to [B]({B}), ice is cold."),
            (f"[C]({C})", C, f"Fire is hot. ([C]({C}))"),
        ],
    ),
    "bare URLs": (
        f"Water is wet ({A}). Ice is cold: <{B}>.",
        [(A, A, f"Water is wet ({A})."), (f"<{B}>", B, f"Ice is cold: <{B}>.")],
    ),
    "author and year": (
        "Water is wet (Smith, 2020). Doe et al. (2019) call ice cold. Fire is hot (Smith, 2020; Doe et al., 2019).\n\n"
        f"## Bibliography\n\n- Doe, J., Roe, R., & Poe, E. (2019). Ice. {B}\n- Smith, A. (2020). Water. {A}\n",
        [
            ("(Smith, 2020)", A, "Water is wet (Smith, 2020)."),
            ("Doe et al. (2019)", B, "Doe et al. (2019) call ice cold."),
            ("(Smith, 2020; Doe et al., 2019)", A, "Fire is hot (Smith, 2020; Doe et al., 2019)."),
            ("(Smith, 2020; Doe et al., 2019)", B, "Fire is hot (Smith, 2020; Doe et al., 2019)."),
        ],
    ),
    "lists per section": (
        f"## Water\n\nWater is wet [1]. Steam is hot [3].\n\n### Sources\n\n1. Title A: {A}\n2. Title B: {B}\n\n"
        f"## Ice\n\nIce is cold [1].\n\n### Sources\n\n1. Title C: {C}\n",
        [("[1]", A, "Water is wet [1]."), ("[3]", None, "Steam is hot [3]."), ("[1]", C, "Ice is cold [1].")],
    ),
    "list items": (
        f"Facts:\n- Water is wet [1]\n- Ice is cold [2]\n  also in summer. [3]\n1. Fire is hot. [1]{LIST}",
        [
            ("[1]", A, "Water is wet [1]"),
            ("[2]", B, "Ice is cold [2]\n  also in summer. [3]"),
            ("[3]", C, "Ice is cold [2]\n  also in summer. [3]"),
            ("[1]", A, "Fire is hot. [1]"),
        ],
    ),
    "Chinese": (
        f"水是湿的[1]。冰是冷的。[2]火是热的！【3】真的吗？是的；水很深[1][2]。\n\n参考文献：\n[1] {A} - 标题\n[2] {B}\n[3] {C}\n",
        [
            ("[1]", A, "水是湿的[1]。"),
            ("[2]", B, "冰是冷的。[2]"),
            ("【3】", C, "火是热的！【3】"),
            ("[1]", A, "水很深[1][2]。"),
            ("[2]", B, "水很深[1][2]。"),
        ],
    ),
    "abbreviations, decimals and URLs": (
        "The U.S. Copyright Office, e.g. Dr. Lee et al. in v1.2.3 of www.example.org, said approx. 3.5 per cent [1]. "
        f"It was founded by J. R. Smith at Acme Inc. in 1990 [2].{LIST}",
        [
            (
                "www.example.org",
                "https://www.example.org",
                "The U.S. Copyright Office, e.g. Dr. Lee et al. in v1.2.3 of "
                "www.example.org, said approx. 3.5 per cent [1].",
            ),
            (
                "[1]",
                A,
                "The U.S. Copyright Office, e.g. Dr. Lee et al. in v1.2.3 of www.example.org, said approx. 3.5 per cent [1].",
            ),
            ("[2]", B, "It was founded by J. R. Smith at Acme Inc. in 1990 [2]."),
        ],
    ),
    "ordinary brackets": (
        "In [2020] and [2019-2023], on [2024-05-03], `x[1]` and a[1] = 2, data_x[2].name, values in [1, 3], [0, 1].\n"
        "- [x] done\n- [ ] open\n\n$y_{[1]} = x[2]$ and \\(z[3]\\) and\n\n$$ a[1] $$\n\n```\nb[1] https://code.example\n```\n"
        f"Only this [2].{LIST}",
        [("[2]", B, "Only this [2].")],
    ),
    "marks without a list": (
        "Water is wet [1]. Ice is cold [^2].",
        [("[1]", None, "Water is wet [1]."), ("[^2]", None, "Ice is cold [^2].")],
    ),
    "section called sources with text": (
        f"## Sources\n\nWe asked three people [1].\n\n- They agreed [2].\n\n## References\n\n1. {A}\n2. {B}\n",
        [("[1]", A, "We asked three people [1]."), ("[2]", B, "They agreed [2].")],
    ),
    "links behind the full stop": (
        f"Water is wet.[]({A}) Ice is cold.[Title B]({B})[web:3]({C}) Fire is hot. [Acme]({A}) says so.",
        [
            (f"[]({A})", A, f"Water is wet.[]({A})"),
            (f"[Title B]({B})", B, f"Ice is cold.[Title B]({B})[web:3]({C})"),
            (f"[web:3]({C})", C, f"Ice is cold.[Title B]({B})[web:3]({C})"),
            (f"[Acme]({A})", A, f"[Acme]({A}) says so."),
        ],
    ),
    "titles of lists in other languages": (
        f"El agua moja [1].\n\n### Fuentes consultadas\n- Agua: {A}\n\n### Quellen\n\nUnd Eis.\n",
        [("[1]", A, "El agua moja [1].")],
    ),
    "lines of links below cited statements": (
        f"- Iron is hard: {A}.\n- {B}\n\nWater is wet ([a]({A})).\n\n{B}\n\nIce is cold.\n\n## End\n\n"
        f"Fire is hot ([b]({B})).\n\nSources: [a]({A}), [b]({B}), [c]({C})\n",
        [
            (A, A, f"Iron is hard: {A}."),
            (f"[a]({A})", A, f"Water is wet ([a]({A}))."),
            (f"[b]({B})", B, f"Fire is hot ([b]({B}))."),
        ],
    ),
    "numbered findings with links": (
        f"It has 20 m² ([Source 1]({A})).\n\n1. Iron costs $5 ([a]({A})).\n2. Gold costs $7 ([b]({C})).\n\n"
        f"## End\n\nGold wins [2].\n\n1. {A}\n2. {B}\n",
        [
            (f"[Source 1]({A})", A, f"It has 20 m² ([Source 1]({A}))."),
            (f"[a]({A})", A, f"Iron costs $5 ([a]({A}))."),
            (f"[b]({C})", C, f"Gold costs $7 ([b]({C}))."),
            ("[2]", B, "Gold wins [2]."),
        ],
    ),
    "prefixes, letters and anchors in lists": (
        'Iron is hard[citation:1]. Gold is soft [i]. Tin is light<a href="#r4">[4]</a>.\n\nSources:\n'
        f'[citation:1] {A}\n[i] {B}\n- <span id="r4">[4]</span> {C}\n',
        [
            ("[citation:1]", A, "Iron is hard[citation:1]."),
            ("[i]", B, "Gold is soft [i]."),
            ("[4]", C, 'Tin is light<a href="#r4">[4]</a>.'),
        ],
    ),
    "links with tags or quotes inside": (
        f'Iron is hard.<a href="{A}"><sup>1</sup></a> Gold is soft [b]({B} "The "soft" metal (2)").',
        [
            (f'<a href="{A}"><sup>1</sup></a>', A, f'Iron is hard.<a href="{A}"><sup>1</sup></a>'),
            (f'[b]({B} "The "soft" metal (2)")', B, f'Gold is soft [b]({B} "The "soft" metal (2)").'),
        ],
    ),
    "German dates and amounts": (
        "Berlin hat rd. 3,8 Mio. Einwohner (Stand: 31. Dez. 2023) [1]. Am 3. Oktober 1990 kam der Beitritt [2]. "
        f"Im 19. Jahrhundert kostete es 4 Mrd. Mark [3]. Es sind 30. Das gilt.{LIST}",
        [
            ("[1]", A, "Berlin hat rd. 3,8 Mio. Einwohner (Stand: 31. Dez. 2023) [1]."),
            ("[2]", B, "Am 3. Oktober 1990 kam der Beitritt [2]."),
            ("[3]", C, "Im 19. Jahrhundert kostete es 4 Mrd. Mark [3]."),
        ],
    ),
    "quotations, brackets, notes and pages behind sentences": (
        '"Water is wet!" she said.[1] (Ice is cold.[2]) Gold melts at 1,064 °C. Iron is hard.[1][a] Tin is light.[2]: 45 '
        f"J. Roe agrees [3].{LIST}",
        [
            ("[1]", A, '"Water is wet!" she said.[1]'),
            ("[2]", B, "(Ice is cold.[2])"),
            ("[1]", A, "Iron is hard.[1][a]"),
            ("[2]", B, "Tin is light.[2]: 45"),
            ("[3]", C, "J. Roe agrees [3]."),
        ],
    ),
    "Arabic": (
        f"بلغ 330 مترا [1]. افتتح في 1889 [2، 3].\n\nالمراجع:\n[1] {A}\n[2] {B}\n[3] {C}\n",
        [
            ("[1]", A, "بلغ 330 مترا [1]."),
            ("[2، 3]", B, "افتتح في 1889 [2، 3]."),
            ("[2، 3]", C, "افتتح في 1889 [2، 3]."),
        ],
    ),
    "lists of autolinks": (f"Iron is hard [2].\n\n## Sources\n\n<{A}>\n\n<{B}>\n", [("[2]", B, "Iron is hard [2].")]),
    "links in nested items": (
        f"- Iron is hard.\n  - [a]({A})\n- Gold\n  - It is soft.\n  - Sources:\n    - {B}\n- Tin is light ([c]({C})).\n",
        [
            (f"[a]({A})", A, "Iron is hard."),
            (B, B, "It is soft."),
            (f"[c]({C})", C, f"Tin is light ([c]({C}))."),
        ],
    ),
    "report in a fence": (f"```markdown\nWater is wet [1].{LIST}```\n", [("[1]", A, "Water is wet [1].")]),
}


@pytest.mark.parametrize("name", REPORTS)
def test_marks_are_bound(name: str) -> None:
    report, expected = REPORTS[name]
    assert bound(report) == expected


@pytest.mark.parametrize(
    "references",
    [
        "Sources\n¹ https://a.example/1\n² https://a.example/2",
        "Sources: [1] Title - https://a.example/1; [2] Title - https://a.example/2",
        '[imf]: https://a.example/1 "World Economic Outlook"\n[wb]: <https://a.example/2>',
    ],
)
def test_reference_lists_contain_no_sentences(references: str) -> None:
    report = f"Water is wet.\n\n{references}\n"
    sentences = [report[each.start : each.end] for each in bind(report).sentences]
    assert [each for each in sentences if each != "Sources:"] == ["Water is wet."]


def test_tags_of_html_lone_urls_and_thematic_breaks_are_no_sentences() -> None:
    report = f"<details>\n\nWater is wet.\n\n</details>\n\n<br/>\n\n* * *\n\n<{A}>\n"
    assert [report[each.start : each.end] for each in bind(report).sentences] == ["Water is wet."]


@pytest.mark.parametrize(
    ("entry", "title"),
    [
        ("Smith. A title without link. 2019.", "Smith. A title without link. 2019"),
        (f"A page with one link {A}", "A page with one link"),
        ("Smith. Title. doi:10.1000/182", "Smith. Title"),
        (f"Title [Source]({A})", "Title"),
        (f"[![Title](https://img.example/t.png)]({A})", "Title"),
    ],
)
def test_titles_of_sources(entry: str, title: str) -> None:
    assert bind(f"Water is wet [1].\n\n## References\n\n1. {entry}\n").sources[0].title == title


VARIANTS = json.loads((Path(__file__).parent / "reports.json").read_text("utf-8"))
"""Hand-checked variants of lists as agents write them: ``[mark, url, title, statement]`` and URLs of unused sources."""


@pytest.mark.parametrize("variant", VARIANTS, ids=[variant["name"] for variant in VARIANTS])
def test_variants_of_lists(variant: dict[str, Any]) -> None:
    report = variant["report"]
    binding = bind(report)
    titles = ["" if mark.source is None else binding.sources[mark.source].title for mark in binding.marks]
    found = [[mark, url, title, statement] for (mark, url, statement), title in zip(bound(report), titles, strict=True)]
    assert found == variant["marks"]
    assert [source.url for source in binding.unused()] == variant["unused"]
