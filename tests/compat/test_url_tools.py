"""URL and text functions that scripts import."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import pytest

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
    normalize_url_for_browser,
    normalize_url_keep_case,
    normalize_url_simple,
    page_form,
    regex_find_urls,
    remove_utm_parameters,
)

KEEP_CASE = [
    ("https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b"),
    ("https://a.com/x?y", "https://a.com/x?y="),
    ("https://www.A.com/Path#frag", "https://A.com/Path"),
    ("HTTP://WWW.A.com/Path", "https://A.com/Path"),
    ("https://a.com/?%2575tm_x=1&id=5", "https://a.com/?id=5"),
    ("https://a.com/?UTM_X=1&id=5", "https://a.com/?id=5"),
    ("https://a.com/?q=%C3%BC", "https://a.com/?q=%C3%BC"),
]


@pytest.mark.parametrize(("url", "expected"), KEEP_CASE)
def test_normalize_url_keep_case_and_its_lower_case_form(url: str, expected: str):
    assert normalize_url_keep_case(url) == expected
    assert normalize_url_simple(url) == expected.lower()


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://www.a.com/Pier/?utm_id=1#top", "https://a.com/Pier"),
        ("http://www.a.com/s?q=C%23&utm_id=1#top", "https://a.com/s?q=C%23"),
        ("https://a.com/s?q=C%2523", "https://a.com/s?q=C%2523"),
        ("https://a.com/100%25", "https://a.com/100%"),
    ],
)
def test_page_form_does_not_decode_a_key_twice(url: str, form: str):
    assert page_form(url) == form


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/?a=1&utm_source=x&b=%20", "https://a.com/?a=1&b=%20"),
        ("https://a.com/?UTM_Campaign=x&b", "https://a.com/?b"),
        ("https://a.com/?a=1#?utm_x=1", "https://a.com/?a=1#?utm_x=1"),
        ("https://a.com/?%75tm%5Fsource=x&b=%20", "https://a.com/?b=%20"),
    ],
)
def test_remove_utm_parameters(url: str, expected: str):
    assert remove_utm_parameters(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("a.com/x", "https://a.com/x"),
        (r"https://a.com/x\_y", "https://a.com/x_y"),
        ("https://a.com/ü b?q=%20", "https://a.com/%C3%BC%20b?q=%20"),
        ("www.a.com/x?utm_id=1&y=2", "https://www.a.com/x?y=2"),
        ("https://münchen.de:8080/ü", "https://münchen.de:8080/%C3%BC"),
        ("https://a.com\ud800/x", "https://a.com?/x"),
    ],
)
def test_normalize_url_for_browser(url: str, expected: str):
    assert normalize_url_for_browser(url) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[words](https://a.com?x=1 "title")', ["https://a.com?x=1"]),
        ("\"https://a.com?q=1\" and 'www.b.com/x'", ["https://a.com?q=1", "https://www.b.com/x"]),
        ("in order https://b.com https://a.com https://b.com", ["https://b.com", "https://a.com"]),
        ("really https://a.com/x?!", ["https://a.com/x"]),
        ("https://en.wikipedia.org/wiki/Foo_(bar)", ["https://en.wikipedia.org/wiki/Foo_(bar)"]),
        ("(see https://a.com/M_(x).)", ["https://a.com/M_(x)"]),
        ("[https://a.com/x](https://b.com/y)", ["https://a.com/x", "https://b.com/y"]),
        ("note https://a.com/x[^1]", ["https://a.com/x"]),
        ("| https://a.com/x|https://b.com/y |", ["https://a.com/x", "https://b.com/y"]),
        ("|https://a.com/1|[the b](https://b.com/M_(x))|", ["https://a.com/1", "https://b.com/M_(x)"]),
        ("https://a.com/1,https://b.com;www.c.com", ["https://a.com/1", "https://b.com", "https://www.c.com"]),
        ("https://a.com/1,2;3|4,", ["https://a.com/1,2;3|4"]),
        ("https://web.example/2020/https://a.com/x", ["https://web.example/2020/https://a.com/x"]),
        (r"https://a.com/a\_b\(c\)\&d", ["https://a.com/a_b(c)&d"]),
        (r'{"url": "https://a.com/x\"}', ["https://a.com/x"]),
        ("**https://a.com/x**, *https://a.com/y*", ["https://a.com/x", "https://a.com/y"]),
        ("_https://a.com/x_ __https://a.com/y__", ["https://a.com/x", "https://a.com/y"]),
        ("见https://a.com/x\uff0c再见。https://a.com/y。", ["https://a.com/x", "https://a.com/y"]),
        ("「https://a.com/北京」\uff08https://a.com/z\uff09", ["https://a.com/北京", "https://a.com/z"]),
        (
            "“https://a.com/x” \u2018https://a.com/y\u2019 «https://a.com/z»",
            [f"https://a.com/{each}" for each in "xyz"],
        ),
        ("mail me@www.a.com, xwww.a.com, .www.a.com, -www.a.com, /www.a.com or see example.com", []),
        ("(ftp://a.com/x) (https://) (https://bad host) www. https://...", ["https://bad"]),
    ],
)
def test_regex_find_urls(text: str, expected: list[str]):
    assert regex_find_urls(text) == expected


HOSTILE = [
    "(https://", "<https://a", "](http://", "__https://x__", "|[xx",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_urls_in_a_long_text_are_found_in_linear_time(hostile: str):
    text = "https://a.com/" + hostile * ((1 << 18) // len(hostile))
    started = time.process_time()
    regex_find_urls(text)
    assert time.process_time() - started < 3  # CPU seconds; 0.1 at most are usual


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (r" https://a.com/x\_y\(1\)\[2\]\*\#\!\&\? ", "https://a.com/x_y(1)[2]*#!&?"),
    ],
)
def test_normalize_url_markdown(url: str, expected: str):
    assert normalize_url_markdown(url) == expected


def test_text_dedent():
    assert text_dedent("\n    one\n      two\n    ") == "one\n  two"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a/b.md", "a/b"), ("a.b/c", "a.b/c"), ("x.tar.gz", "x.tar"), (".hidden", ".hidden")],
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


@pytest.mark.parametrize("section", ["Args:", "Parameters\n    ----------", ":param x: y", "Returns: a thing"])
def test_description_ends_before_the_first_section(section: str):
    doc = f"""Find the city.

    More about it, and its args: none.

    {section}
        name: what
    """
    assert extract_doc_description(doc) == "Find the city.\n\nMore about it, and its args: none."


def test_description_of_a_running_function():
    def documented() -> str:
        """Find the city.

        Returns:
            its name
        """
        frame = inspect.currentframe()
        assert frame is not None
        return extract_doc_description_from_frame(frame)

    assert documented() == "Find the city."
