"""URL and text functions that scripts import."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind2web2 import (
    encode_image,
    encode_image_buffer,
    extract_doc_description,
    extract_doc_description_from_frame,
    normalize_url_markdown,
    strip_extension,
    text_dedent,
)
from mind2web2.utils.url_tools import (
    URLs,
    normalize_url_for_browser,
    normalize_url_keep_case,
    normalize_url_simple,
    page_form,
    regex_find_urls,
    remove_utm_parameters,
)

KEEP_CASE = [
    ("http://a.com/", "https://a.com"),
    ("https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b"),
    ("https://a.com/p?a=1&b=2&a=3", "https://a.com/p?a=1&a=3&b=2"),
    ("https://a.com/x?y", "https://a.com/x?y="),
    ("a.com/b", "a.com/b"),
    ("https://www.A.com/Path#frag", "https://A.com/Path"),
    ("HTTP://WWW.A.com/Path", "https://A.com/Path"),
    ("https://a.com/P%20q/", "https://a.com/P q"),
    ("https://a.com/P//", "https://a.com/P/"),
    ("https://a.com/?utm_source=x&utm_medium=y", "https://a.com"),
    ("https://a.com/?%75tm_x=1&id=5", "https://a.com/?id=5"),
    ("https://a.com/?%2575tm_x=1&id=5", "https://a.com/?id=5"),
    ("https://a.com/?UTM_X=1&id=5", "https://a.com/?id=5"),
    ("https://a.com/?q=%C3%BC", "https://a.com/?q=%C3%BC"),
    ("ftp://a.com/x/", "ftp://a.com/x"),
    ("", ""),
]


@pytest.mark.parametrize(("url", "expected"), KEEP_CASE)
def test_normalize_url_keep_case_and_its_lower_case_form(url: str, expected: str):
    assert normalize_url_keep_case(url) == expected
    assert normalize_url_simple(url) == expected.lower()


@pytest.mark.parametrize("url", ["http://[bad", "https://a]b/x", "https://%5Bbad/"])
def test_unparsable_url_cannot_be_normalized_but_is_its_own_page(url: str):
    for normalize in (normalize_url_keep_case, normalize_url_simple):
        with pytest.raises(ValueError):
            normalize(url)
    assert page_form(url) == url


URL_PARTS = st.text(alphabet="aB/%2350?&=#utm_.+ ü:[]@", max_size=30)


@given(URL_PARTS)
def test_normalized_url_has_no_utm_parameter_and_keeps_its_form_in_other_schemes(rest: str):
    def form(url: str) -> str | None:
        try:
            return normalize_url_keep_case(url)
        except ValueError:
            return None

    found = form(f"https://a.com/{rest}")
    assert found == form(f"http://www.a.com/{rest}") == form(f"https://a.com/{rest}{'' if '#' in rest else '#top'}")
    assert found is None or "utm_" not in found.partition("?")[2]


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://www.a.com/Pier/?utm_id=1#top", "https://a.com/Pier"),
        ("https://a.com/s?q=C%23", "https://a.com/s?q=C%23"),
        ("http://www.a.com/s?q=C%23&utm_id=1#top", "https://a.com/s?q=C%23"),
        ("https://a.com/s?q=C%2523", "https://a.com/s?q=C%2523"),
        ("https://a.com/s?q=C#", "https://a.com/s?q=C"),
        ("https://a.com/100%25", "https://a.com/100%"),
    ],
)
def test_page_form_does_not_decode_a_key_twice(url: str, form: str):
    assert page_form(url) == form


@given(st.text(max_size=60))
@settings(max_examples=50)
def test_page_form_accepts_any_text(url: str):
    assert isinstance(page_form(url), str)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/?utm_source=x", "https://a.com/"),
        ("https://a.com/?a=1&utm_source=x&b=%20", "https://a.com/?a=1&b=%20"),
        ("https://a.com/?UTM_Campaign=x&b", "https://a.com/?b"),
        ("https://a.com/?a=1#?utm_x=1", "https://a.com/?a=1#?utm_x=1"),
        ("https://a.com/utm_source=x", "https://a.com/utm_source=x"),
        ("https://a.com/?%75tm%5Fsource=x&b=%20", "https://a.com/?b=%20"),
    ],
)
def test_remove_utm_parameters(url: str, expected: str):
    assert remove_utm_parameters(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (" https://a.com ", "https://a.com"),
        ("a.com/x", "https://a.com/x"),
        ("//a.com/x", "https://a.com/x"),
        (r"https://a.com/x\_y", "https://a.com/x_y"),
        ("https://a.com/ü b?q=%20", "https://a.com/%C3%BC%20b?q=%20"),
        ("www.a.com/x?utm_id=1&y=2", "https://www.a.com/x?y=2"),
        ("http://a.com/x?utm_id=1#top", "http://a.com/x#top"),
        ("https://münchen.de:8080/ü", "https://münchen.de:8080/%C3%BC"),
        ("例え.jp", "https://例え.jp"),
        ("https://a.com\ud800/x", "https://a.com?/x"),
    ],
)
def test_normalize_url_for_browser(url: str, expected: str):
    assert normalize_url_for_browser(url) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.com/x for more", ["https://a.com/x"]),
        ("[words](https://a.com/x)", ["https://a.com/x"]),
        ('[words](https://a.com?x=1 "title")', ["https://a.com?x=1"]),
        ("(https://a.com:8080/x?y=1)", ["https://a.com:8080/x?y=1"]),
        ("<http://127.0.0.1/x>", ["http://127.0.0.1/x"]),
        ("\"https://a.com?q=1\" and 'www.b.com/x'", ["https://a.com?q=1", "https://www.b.com/x"]),
        ("in order https://b.com https://a.com https://b.com", ["https://b.com", "https://a.com"]),
        ("bare port and query http://localhost:8080?x=1 here", ["http://localhost:8080?x=1"]),
        ("the end. https://a.com/x.", ["https://a.com/x"]),
        ("really https://a.com/x?!", ["https://a.com/x"]),
        ("https://en.wikipedia.org/wiki/Foo_(bar)", ["https://en.wikipedia.org/wiki/Foo_(bar)"]),
        ("[w](https://en.wikipedia.org/wiki/Foo_(bar))", ["https://en.wikipedia.org/wiki/Foo_(bar)"]),
        ("(see https://a.com/M_(x).)", ["https://a.com/M_(x)"]),
        ("[https://a.com/x](https://b.com/y)", ["https://a.com/x", "https://b.com/y"]),
        ("https://a.com/f?size[x]=1 [1]", ["https://a.com/f?size[x]=1"]),
        ("note https://a.com/x[^1]", ["https://a.com/x"]),
        ("| https://a.com/x|https://b.com/y |", ["https://a.com/x", "https://b.com/y"]),
        ("|https://a.com/1|www.a.com/2|", ["https://a.com/1", "https://www.a.com/2"]),
        ("|https://a.com/1|**https://a.com/2**|", ["https://a.com/1", "https://a.com/2"]),
        ("|https://a.com/1|[the b](https://b.com/M_(x))|", ["https://a.com/1", "https://b.com/M_(x)"]),
        ("https://a.com/1,https://b.com;www.c.com", ["https://a.com/1", "https://b.com", "https://www.c.com"]),
        ("https://a.com/1,2;3|4,", ["https://a.com/1,2;3|4"]),
        ("https://a.com/x|y z", ["https://a.com/x|y"]),
        ("https://web.example/2020/https://a.com/x", ["https://web.example/2020/https://a.com/x"]),
        (r"https://a.com/a\_b\(c\)\&d", ["https://a.com/a_b(c)&d"]),
        (r'{"url": "https://a.com/x\"}', ["https://a.com/x"]),
        (r"https://a.com/x\n", ["https://a.com/x"]),
        ("**https://a.com/x**, *https://a.com/y*", ["https://a.com/x", "https://a.com/y"]),
        ("_https://a.com/x_ __https://a.com/y__", ["https://a.com/x", "https://a.com/y"]),
        ("~~https://a.com/x~~ https://a.com/y~~", ["https://a.com/x", "https://a.com/y~~"]),
        ("https://a.com/x_ https://a.com/y__", ["https://a.com/x_", "https://a.com/y__"]),
        ("_https://a.com/x__", ["https://a.com/x_"]),
        ("**_https://a.com/x_**. (_**https://a.com/y**_)", ["https://a.com/x", "https://a.com/y"]),
        ("`https://a.com/x` {https://a.com/y}", ["https://a.com/x", "https://a.com/y"]),
        ("见https://a.com/x\uff0c再见。https://a.com/y。", ["https://a.com/x", "https://a.com/y"]),
        ("「https://a.com/北京」\uff08https://a.com/z\uff09", ["https://a.com/北京", "https://a.com/z"]),
        (
            "“https://a.com/x” \u2018https://a.com/y\u2019 «https://a.com/z»",
            [f"https://a.com/{each}" for each in "xyz"],
        ),
        ("https://a.com/x… https://a.com/y—see", ["https://a.com/x", "https://a.com/y"]),
        ("see:www.a.com/x WWW.B.com", ["https://www.a.com/x", "https://WWW.B.com"]),
        ("mail me@www.a.com, xwww.a.com, .www.a.com, -www.a.com, /www.a.com or see example.com", []),
        ("(ftp://a.com/x) (https://) (https://bad host) www. https://...", ["https://bad"]),
        ("(https://-bad-/x) (https://a.com:99999/x) http://a.com:port/", []),
        ("http://[::1]:80/x and http://www/x", ["http://[::1]:80/x"]),
        ("", []),
    ],
)
def test_regex_find_urls(text: str, expected: list[str]):
    assert regex_find_urls(text) == expected


HOSTILE = [
    "(", "[[", "(https://", "<https://a", "'https://", '"www.', "www.", "https://a.", "https://a-", "](http://",
    "https://a)", "https://a|", "__https://x__", "\\https://", "|[", "|[xx", "|***", ",;", ",www.", "|[a](",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_urls_in_a_mebibyte_are_found_in_linear_time(hostile: str):
    text = "https://a.com/" + hostile * ((1 << 20) // len(hostile))
    started = time.process_time()
    regex_find_urls(text)
    assert time.process_time() - started < 10  # CPU seconds; 0.3 at most are usual


@given(st.text(alphabet="ahtps:/w.()[]|_~*\\ üh,\uff0c“", max_size=200))
def test_found_urls_are_in_order_and_without_repeats(text: str):
    found = regex_find_urls(f"https://a.com/{text} https://z.com")
    assert len(set(found)) == len(found)
    assert found[-1] == "https://z.com"
    assert regex_find_urls("\n".join(found)) == found
    assert all(url.startswith(("http://", "https://")) and url[-1] not in ".,;:!?*'|" for url in found)


WRITTEN_URLS = st.builds(
    "{}://{}/{}{}x".format,
    st.sampled_from(["http", "https", "HTTPS"]),
    st.sampled_from(["a.org", "www.b.co.uk", "x-y.example.com:8080", "127.0.0.1", "[::1]", "münchen.de", "例え.jp"]),
    st.text(alphabet="abzA09-_~.+=@:!$&'*,;/|ü北", max_size=8),
    st.sampled_from(["", "M_(y)/", "?a=%20&b[c]=", "?q=C%23#", "#:~:text="]),
)
AROUND_URLS = [
    ("", ""), ("(", ")"), ("<", ">"), ("[x](", ")"), ('"', '"'), ("「", "」"), ("“", "”"), ("**", "**"), ("|", "|"),
    ("~~", "~~"), ("__", "__"), ("_", "_"), ("`", "`"), ("", ", and"), ("", ". Next"), ("\n- ", "\n"), ("见", "。"),
]  # fmt: skip


@given(WRITTEN_URLS, st.sampled_from(AROUND_URLS))
def test_url_is_found_whole_inside_marks(url: str, around: tuple[str, str]):
    assert regex_find_urls(around[0] + url + around[1]) == [url]


@given(st.lists(st.sampled_from(["https://a.com/x", "http://b.com/f?y[z]=1", "https://c.com/M_(x)"]), min_size=1))
def test_each_url_of_a_markdown_text_is_found_once(urls: list[str]):
    text = ", ".join(f"[name]({url})" for url in urls)
    assert regex_find_urls(text) == list(dict.fromkeys(urls))


def test_urls_is_a_list_of_strings():
    assert URLs(urls=["https://a.com"]).model_dump() == {"urls": ["https://a.com"]}
    assert URLs().urls == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (r" https://a.com/x\_y\(1\)\[2\]\*\#\!\&\? ", "https://a.com/x_y(1)[2]*#!&?"),
        (r"https://a.com/x\-y", r"https://a.com/x\-y"),
        ("https://a.com", "https://a.com"),
    ],
)
def test_normalize_url_markdown(url: str, expected: str):
    assert normalize_url_markdown(url) == expected


def test_text_dedent():
    assert text_dedent("\n    one\n      two\n    ") == "one\n  two"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a/b.md", "a/b"), ("answer_1.md", "answer_1"), ("a.b/c", "a.b/c"), ("x.tar.gz", "x.tar"), (".hidden", ".hidden")],
)
def test_strip_extension(path: str, expected: str):
    assert strip_extension(path) == expected


def test_images_are_encoded_as_base64(tmp_path: Path):
    (tmp_path / "x.jpg").write_bytes(b"\xff\xd8")
    assert (
        encode_image(tmp_path / "x.jpg")
        == encode_image(str(tmp_path / "x.jpg"))
        == encode_image_buffer(b"\xff\xd8")
        == "/9g="
    )


@pytest.mark.parametrize(
    "section", ["Args:", "Returns:", "Raises:", "Parameters\n    ----------", ":param x: y", "Returns: a thing"]
)
def test_description_ends_before_the_first_section(section: str):
    doc = f"""Find the city.

    More about it, and its args: none.

    {section}
        name: what
    """
    assert extract_doc_description(doc) == "Find the city.\n\nMore about it, and its args: none."


def test_docstring_without_sections_is_the_description():
    assert extract_doc_description("One line.") == "One line."
    assert extract_doc_description(None) == extract_doc_description("") == ""


def test_description_of_a_running_function():
    def documented() -> str:
        """Find the city.

        Returns:
            its name
        """
        frame = inspect.currentframe()
        assert frame is not None
        return extract_doc_description_from_frame(frame)

    def silent() -> str:
        frame = inspect.currentframe()
        assert frame is not None
        return extract_doc_description_from_frame(frame)

    assert documented() == "Find the city."
    assert silent() == ""
