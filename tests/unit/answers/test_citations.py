# ruff: noqa: RUF001 - the tests use punctuation of other scripts
from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import citations as module
from answers.citations import MAX_URL_CHARS, Citation, CitationKind, citations, unique_urls

A = "https://a.example/x"
B = "https://b.example/y"

URLS = {
    # markdown links
    "[label](https://a.example/x)": [A],
    '[label](https://a.example/x "A title")': [A],
    "[label](https://a.example/x\n(A title))": [A],
    "[label](<https://a.example/x>)": [A],
    "[label](<https://a.example/x y>)": ["https://a.example/x y"],
    "[label](https://a.example/Foo_(bar))": ["https://a.example/Foo_(bar)"],
    "[label](https://a.example/(a(b)c))": ["https://a.example/(a(b)c)"],
    r"[label](https://a.example/Foo_\(bar\))": ["https://a.example/Foo_(bar)"],
    "[label](https://a.example/x,y;z)": ["https://a.example/x,y;z"],
    "[one](https://a.example/x)[two](https://b.example/y)": [A, B],
    "[a [nested] label](https://a.example/x)": [A],
    "![image](https://a.example/x)": [A],
    "[![badge](https://a.example/x)](https://b.example/y)": [A, B],
    "[https://a.example/x](https://a.example/x)": [A],
    "[a.example/x, see https://a.exam…](https://a.example/x)": [A],
    "[label](www.a.example/x)": ["https://www.a.example/x"],
    "[label](https://a.example/x, and more": [A],
    "[label](/relative/path) and [mail](mailto:me@a.example)": [],
    "https://a.example/x": [A],
    "See https://a.example/x, or https://b.example/y!": [A, B],
    "https://a.example/x…": [A],
    "https://a.example/x?q=1&r=2#top": ["https://a.example/x?q=1&r=2#top"],
    "https://a.example/x?q=1&amp;r=2": ["https://a.example/x?q=1&r=2"],
    "https://a.example/x,y": ["https://a.example/x,y"],
    "https://a.example/x,https://b.example/y": [A, B],
    "https://a.example/x;https://b.example/y;": [A, B],
    "HTTPS://A.Example/X": ["HTTPS://A.Example/X"],
    "http://[2001:db8::1]:80/x": ["http://[2001:db8::1]:80/x"],
    "http://user:word@a.example/x": ["http://user:word@a.example/x"],
    "https://a.example/@name": ["https://a.example/@name"],
    "https://archive.example/2020/https://a.example/x": ["https://archive.example/2020/https://a.example/x"],
    # emphasis, quotes, code
    "_https://a.example/x_": [A],
    "```\nhttps://a.example/x\n```": [A],
    '"https://a.example/x"': [A],
    "['https://a.example/x','https://b.example/y']": [A, B],
    "“https://a.example/x”": [A],
    "https://a.example/x's": ["https://a.example/x's"],
    "(https://a.example/wiki/McDonald's)": ["https://a.example/wiki/McDonald's"],
    "https://a.example/wiki/McDonald’s": ["https://a.example/wiki/McDonald’s"],
    "https://a.example/Rock_’n’_Roll": ["https://a.example/Rock_’n’_Roll"],
    "‘https://a.example/x’": [A],
    "https://a.example's page": ["https://a.example"],
    "https://a.example/'s page": ["https://a.example/"],
    "www.a.example's page": ["https://www.a.example"],
    "‘https://a.example’s page’": ["https://a.example"],
    "https://a.example/L'Or": ["https://a.example/L'Or"],
    "**https://a.example/x**text": [A],
    "**_https://a.example/x_**": [A],
    "_Source: https://a.example/x_": [A],
    "https://a.example/x_": ["https://a.example/x_"],
    "_~~https://a.example/x~~_": [A],
    "https://a.example/Foo_(bar)_baz, https://b.example/__init__": [
        "https://a.example/Foo_(bar)_baz",
        "https://b.example/__init__",
    ],
    "_Foo: https://a.example/Foo_(bar)_baz and https://b.example/y_": ["https://a.example/Foo_(bar)_baz", B],
    "_https://a.example/x_ and https://b.example/y_": [A, "https://b.example/y_"],
    "`_x` is in https://b.example/y_": ["https://b.example/y_"],
    r"\_x is in https://b.example/y_": ["https://b.example/y_"],
    "__https://a.example/__init____": ["https://a.example/__init__"],
    "https://a.example/x?sig=aa==": ["https://a.example/x?sig=aa=="],
    "(https://a.example/x)": [A],
    "(https://a.example/Foo_(bar))": ["https://a.example/Foo_(bar)"],
    "https://a.example/Foo_(bar)": ["https://a.example/Foo_(bar)"],
    "https://a.example:8080/x?y=[1](2)&z": ["https://a.example:8080/x?y=[1](2)&z"],
    "https://a.example/x(in Dutch)": [A],
    "https://a.example/x(1": ["https://a.example/x(1"],
    "[https://a.example/x]": [A],
    "| one | https://a.example/x | https://b.example/y |": [A, B],
    "| [label](https://a.example/x)<br>https://b.example/y |": [A, B],
    # references and footnotes
    "[text][1]\n\n[1]: https://a.example/x": [A],
    "[text][One Two]\n\n> - [one  two]: https://a.example/x": [A],
    "[text][2]\n\n[1]: https://a.example/x\n[2]: https://b.example/y": [B, A],
    "[1] https://a.example/x": [A],
    "[^1]\n\n[^1]: Author, *Title*, https://a.example/x.": [A],
    "[^n]: first\n    https://a.example/x\n\n    https://b.example/y": [A, B],
    # autolinks and HTML
    "<https://a.example/x.>": ["https://a.example/x."],
    "<https://a.example/x and more": [A],
    "<a href='https://a.example/x?q=1&amp;r=2'>": ["https://a.example/x?q=1&r=2"],
    '<a class="k" href="https://a.example/x">https://a.example/x</a>': [A],
    # www.
    "See www.a.example.": ["https://www.a.example"],
    "me@www.a.example": [],
    "awww.a.example": [],
    # escapes
    r"https://a.example/a\_b\*c": ["https://a.example/a_b*c"],
    r"https://a.example/x\|y": ["https://a.example/x|y"],
    "https://a.example/x\\\nhttps://b.example/y": [A, B],
    # other scripts
    "https://münchen.example/straße": ["https://münchen.example/straße"],
    "見よhttps://a.example/x。次": [A],
    "（https://a.example/x）": [A],
    "（出典：https://a.example/Foo_(bar)）」": ["https://a.example/Foo_(bar)"],
    "https://a.example/レオナルド・ダ・ヴィンチ・": ["https://a.example/レオナルド・ダ・ヴィンチ"],
    "https://a.example/x\u2014and": [A],
    **{f"https://a.example/x{sign}": [A] for sign in "·•|–›»”’。、）‣▪◦●■→←⇒⟶∙⋅・―−✓★†§¦‖"},
    **{f"https://a.example/x{sign} https://b.example/y.{sign},": [A, B] for sign in "·•|–›→"},
    **{f"https://a.example/x{sign}https://b.example/y": [A, B] for sign in "·•|–→"},
    "https://a.example/Col·laboració": ["https://a.example/Col·laboració"],
    "https://a.example/C♯": ["https://a.example/C♯"],
    "‹https://a.example/x›، https://b.example/y؟": [A, B],
    "https://a.example/x｜https://b.example/y": [A, B],
    # without a scheme
    "See example.com/pricing, or docs.example.org/a_b?c=d#e.": [
        "https://example.com/pricing",
        "https://docs.example.org/a_b?c=d#e",
    ],
    "Source: nasa.gov; 来源：example.com。": ["https://nasa.gov", "https://example.com"],
    "and/or, node.js/npm, ASP.NET/MVC, v2.1/beta, main.rs/lib, e.g./i.e., 1.5/2.0, a@example.com/x, path/to.com/x": [],
    "Provider: Booking.com": [],
    # identifiers
    "(doi:10.1000/xyz.123), DOI 10.1016/S0140-6736(20)30183-5.": [
        "https://doi.org/10.1000/xyz.123",
        "https://doi.org/10.1016/S0140-6736(20)30183-5",
    ],
    "arXiv:2506.21506v2 and arxiv: math.GT/0309136": [
        "https://arxiv.org/abs/2506.21506v2",
        "https://arxiv.org/abs/math.GT/0309136",
    ],
    "PMID: 12345678, PMCID: PMC7095418, RFC 9110": [
        "https://pubmed.ncbi.nlm.nih.gov/12345678/",
        "https://pmc.ncbi.nlm.nih.gov/articles/PMC7095418/",
        "https://www.rfc-editor.org/rfc/rfc9110",
    ],
    "[doi:10.1000/abc](https://doi.org/10.1000/abc)": ["https://doi.org/10.1000/abc"],
    "version 10.1000/3, PMID control, PMC budget, RFC process, RFC 99999, arXiv:abc, doi:foo, 10.5/kg": [],
    # not URLs
    "https://": [],
    "http:///x": [],
    "https://{host}/x": [],
    "ftp://a.example/x": [],
}


def test_urls_of_a_text() -> None:
    assert {text: list(unique_urls(text)) for text in URLS} == URLS


def only_citation(text: str) -> Citation:
    [found] = citations(text)
    return found


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        ("[the *label*](https://a.example/x)", CitationKind.LINK, "the *label*"),
        ("![the image](https://a.example/x)", CitationKind.IMAGE, "the image"),
        ("](https://a.example/x)", CitationKind.LINK, ""),
        ("<https://a.example/x>", CitationKind.AUTOLINK, ""),
        ("https://a.example/x", CitationKind.BARE, ""),
        ("[One]: https://a.example/x", CitationKind.DEFINITION, "One"),
        ("[^note]: see https://a.example/x", CitationKind.FOOTNOTE, "note"),
        ('<img src="https://a.example/x">', CitationKind.HTML, ""),
    ],
)
def test_kind_and_label_of_a_citation(text: str, kind: CitationKind, label: str) -> None:
    found = only_citation(text)
    assert (found.url, found.kind, found.label) == (A, kind, label)


def test_citation_has_its_position() -> None:
    text = r"first [label](https://a.example/a\_b), then www.b.example."
    assert [text[each.start : each.end] for each in citations(text)] == [r"https://a.example/a\_b", "www.b.example"]


def test_reference_and_its_definition_each_have_a_position() -> None:
    text = "As [they say][s], and [S].\n\n[s]: https://a.example/x\n[S]: https://b.example/y\n"
    assert [(each.kind.value, each.url, text[each.start : each.end]) for each in citations(text)] == [
        ("reference", A, "[they say][s]"),
        ("reference", A, "[S]"),
        ("definition", A, A),
        ("definition", B, B),
    ]


def test_footnote_ends_before_unindented_text() -> None:
    text = "[^1]: https://a.example/1\nhttps://a.example/2\n[^2]: https://a.example/3"
    assert [(each.kind.value, each.label) for each in citations(text)] == [
        ("footnote", "1"),
        ("bare", ""),
        ("footnote", "2"),
    ]


def test_label_is_truncated_to_a_maximum_length() -> None:
    assert only_citation(f"[{'a' * 1000}](https://a.example/x)").label == "a" * 300


@pytest.mark.parametrize(
    ("text", "url", "full"),
    [
        ("https://a.example/annual-rep...", "https://a.example/annual-rep", "https://a.example/annual-report.pdf"),
        ("(https://a.example/annual-rep…).", "https://a.example/annual-rep", "https://a.example/annual-report.pdf"),
        ("[a](https://a.example/annual-rep...)", "https://a.example/annual-rep", "https://a.example/annual-report"),
        ("https://a.example/…/islands.html", "https://a.example/", "https://a.example/2026/islands.html"),
        ("https://a.example/Mercury_(pla", "https://a.example/Mercury_(pla", "https://a.example/Mercury_(planet)"),
        ("https://a.example/annual[...]", "https://a.example/annual", "https://a.example/annual-report"),
        ("- [label](https://a.example/annu\n", "https://a.example/annu", "https://a.example/annual"),
        ("[label](https://a.example/annu", "https://a.example/annu", "https://a.example/annual"),
    ],
)
def test_url_that_is_cut_off_is_truncated_unless_one_other_completes_it(text: str, url: str, full: str) -> None:
    found = only_citation(text)
    assert (found.url, found.truncated) == (url, True)
    assert {(each.url, each.truncated) for each in citations(f"<{full}>\n\n{text}")} == {(full, False)}
    ambiguous = citations(f"<{full}> <{full.replace('l', 'll').replace('2026', '2025')}> {text}")
    assert (ambiguous[-1].url, ambiguous[-1].truncated) in {(url, True), (full, False)}


def test_url_with_an_omission_in_the_middle_needs_a_completion_with_its_end() -> None:
    text = "https://a.example/…/islands.html <https://a.example/2026/lakes.html>"
    assert [(each.url, each.truncated) for each in citations(text)] == [
        ("https://a.example/", True),
        ("https://a.example/2026/lakes.html", False),
    ]


def test_ellipsis_after_a_space_and_between_versions_cuts_nothing() -> None:
    found = citations("https://a.example/x ... https://a.example/compare/v1.0...v2.0 https://a.example/x(1)")
    assert not any(each.truncated for each in found)


def test_url_beyond_the_length_limit_is_not_a_citation() -> None:
    start = "https://a.example/"
    longest = start + "x" * (MAX_URL_CHARS - len(start))
    for form in ("{}", "[label]({})", "<{}>", '<a href="{}">'):
        assert unique_urls(form.format(longest)) == (longest,)
        assert unique_urls(form.format(longest + "x") + " " + A) == (A,)


def test_repeated_urls_are_listed_once_in_order_of_first_use() -> None:
    assert unique_urls(f"{B} {A} {B} {A}") == (B, A)


PIECES = [
    "[",
    "]",
    "(",
    ")",
    "](",
    "<",
    ">",
    "\\",
    "'",
    '"',
    ",",
    ";",
    "\n",
    " ",
    "!",
    ":",
    "^",
    "|",
    "x",
    "é",
    "[1]: ",
]
PIECES += ["https://a.example/", "http://", "www.b.example", "&amp;", "**", "href="]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_gives_ordered_positions_that_contain_urls(text: str) -> None:
    found = citations(text)
    assert [each.start for each in found] == sorted(each.start for each in found)
    for each in found:
        assert 0 <= each.start < each.end <= len(text)
        assert each.url.lower().startswith(("http://", "https://"))
        assert "\n" not in each.url


@given(st.lists(st.sampled_from([*PIECES, "www.", "c.d"]), max_size=40).map("".join), st.integers(1, 9))
def test_citations_do_not_depend_on_the_parts_that_are_searched(text: str, part_chars: int) -> None:
    found = citations(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PART_CHARS", part_chars)
        assert citations(text) == found


HOST = st.sampled_from(["a.example", "www.b.example:8443", "localhost:8000", "[2001:db8::1]:80", "münchen.example"])
SEGMENT = st.sampled_from(
    ["x", "Mercury_(planet)", "a_b", "~me", "f[1]", "(a(b)c)", "L'Or", "1,2;3", "a*b", "%20", "水星", "@n",
     "McDonald's", "McDonald’s", "Foo_(bar)_baz", "__init__", "Col·laboració"]
)  # fmt: skip
QUERY = st.sampled_from(["", "?q=1", "?q=1&r=(2)", "?url=https://c.example/d", "#top", "?x[]=1&y==z"])
MADE_URLS = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}/{'/'.join(path)}{query}",
    st.sampled_from(["http", "https"]),
    HOST,
    st.lists(SEGMENT, min_size=1, max_size=3),
    QUERY,
)
WRAPPINGS = [
    "{}", "{}.", "{}, and", "see:{}", "({})", "(see {}).", "[{}]", "{{{}}}", "<{}>", '"{}"', "“{}”", "«{}»", "‹{}›",
    "'{}'", "‘{}’", "{}·", "{} •", "{}→",
    "（{}）", "「{}」", "【{}】", "《{}》", "［{}］", "{}。", "{}、", "{}，", "（{}）」。", "{}！",
    "**{}**", "__{}__", "_{}_", "*{}*", "***{}***", "**_{}_**", "~~{}~~", "=={}==", "`{}`", "```\n{}\n```", "**({})**.",
    "**Source: {}**", "_Source: {}_",
    "[label]({})", '[label]({} "Title")', "[label](<{}>)", "![image]({})", "**[label]({})**", "([label]({}))",
    "[1]: {}", "[1]: <{}>", "[^1]: {}", "[text][1]\n\n[1]: {}", "| {} |", "|{}|", "| a | {} | b |", "- {}", "> {}",
    '<a href="{}">label</a>', "<a href={}>label</a>", "<td>{}</td>",
]  # fmt: skip


@given(url=MADE_URLS, wrapping=st.sampled_from(WRAPPINGS))
def test_url_in_any_wrapping_is_found_unchanged(url: str, wrapping: str) -> None:
    assert unique_urls(wrapping.format(url)) == (url,)


@given(st.lists(st.tuples(MADE_URLS, st.sampled_from(WRAPPINGS)), min_size=1, max_size=8))
def test_urls_are_listed_in_order_of_first_citation(cited: list[tuple[str, str]]) -> None:
    text = "\n\n".join(wrapping.replace("1]", f"n{nth}]").format(url) for nth, (url, wrapping) in enumerate(cited))
    assert unique_urls(text) == tuple(dict.fromkeys(url for url, _ in cited))


HOSTILE = [
    "[", "](", "[](", "[x][y]", "https://", "<http://a", "http://a,", "_http://a_ ", "http://a(b ", "**",
    "[a]: http://a\n", "[^1]: ", "[[[[((((", "http://a/’s", "http://a/_x_ ", "'http://a's",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_parsed_in_linear_time(piece: str) -> None:
    """Measures CPU time, which does not depend on the load. Quadratic time would take minutes."""
    text = f"https://a.example/{piece * (50_000 // len(piece))}"
    started = process_time()
    citations(text)
    assert process_time() - started < 5
