"""URL and text functions that scripts import."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import pytest
from hypothesis import given
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
    normalize_url_simple,
    regex_find_urls,
    remove_utm_parameters,
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.com/", "https://a.com"),
        ("https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b"),
        ("https://a.com/p?a=1&b=2&a=3", "https://a.com/p?a=1&a=3&b=2"),
        ("https://a.com/x?y", "https://a.com/x?y="),
        ("a.com/b", "a.com/b"),
        ("https://www.A.com/Path#frag", "https://a.com/path"),
        ("https://a.com/P%20q/", "https://a.com/p q"),
        ("https://a.com/?utm_source=x&utm_medium=y", "https://a.com"),
        ("https://a.com/?q=%C3%BC", "https://a.com/?q=%c3%bc"),
        ("ftp://a.com/x/", "ftp://a.com/x"),
        ("http://[bad", "http://[bad"),
        ("", ""),
    ],
)
def test_normalize_url_simple(url: str, expected: str):
    assert normalize_url_simple(url) == expected


@given(st.text(max_size=60))
def test_normalize_url_simple_accepts_any_text(url: str):
    assert isinstance(normalize_url_simple(url), str)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/?utm_source=x", "https://a.com/"),
        ("https://a.com/?a=1&utm_source=x&b=%20", "https://a.com/?a=1&b=%20"),
        ("https://a.com/?UTM_Campaign=x&b", "https://a.com/?b"),
        ("https://a.com/?a=1#?utm_x=1", "https://a.com/?a=1#?utm_x=1"),
        ("https://a.com/utm_source=x", "https://a.com/utm_source=x"),
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
    ],
)
def test_normalize_url_for_browser(url: str, expected: str):
    assert normalize_url_for_browser(url) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.com/x for more", {"https://a.com/x"}),
        ("[words](https://a.com/x)", {"https://a.com/x"}),
        ('[words](https://a.com?x=1 "title")', {"https://a.com?x=1"}),
        ("(https://a.com:8080/x?y=1)", {"https://a.com:8080/x?y=1"}),
        ("<http://127.0.0.1/x>", {"http://127.0.0.1/x"}),
        ("\"https://a.com?q=1\" and 'www.b.com/x'", {"https://a.com?q=1", "https://www.b.com/x"}),
        ("www.a.com/x is bare", {"https://www.a.com/x"}),
        ("bare with a port https://a.com:8080/x", set()),
        ("bare with a query https://a.com?x=1", set()),
        ("bare address http://127.0.0.1/x", set()),
        ("bare host https://localhost/x", set()),
        ("a query after a path https://a.com/x?y=1&z=2", {"https://a.com/x?y=1&z=2"}),
        ("the end. https://a.com/x.", {"https://a.com/x"}),
        ("really https://a.com/x?!", {"https://a.com/x"}),
        ("is it https://a.com?", {"https://a.com"}),
        ("https://en.wikipedia.org/wiki/Foo_(bar)", {"https://en.wikipedia.org/wiki/Foo_(bar"}),
        ("[w](https://en.wikipedia.org/wiki/Foo_(bar))", {"https://en.wikipedia.org/wiki/Foo_(bar"}),
        ("[https://a.com/x](https://b.com/y)", {"https://a.com/x", "https://b.com/y"}),
        ("| https://a.com/x|https://b.com/y |", {"https://a.com/x", "https://b.com/y"}),
        ("twice https://a.com/x https://a.com/x", {"https://a.com/x"}),
        ("mail me@www.a.com or see example.com", set()),
        ("(ftp://a.com/x) (https://) (https://bad host)", set()),
        ("(https://-bad-/x) (https://a.com:99999/x)", set()),
        ("", set()),
    ],
)
def test_regex_find_urls(text: str, expected: set[str]):
    found = regex_find_urls(text)
    assert isinstance(found, list)
    assert len(found) == len(expected)
    assert set(found) == expected


@pytest.mark.parametrize(
    "hostile",
    ["(", "[[", "(https://", "<https://a", "'https://", '"www.', "www.", "https://a.", "https://a-", "](http://"],
)
def test_finding_urls_takes_linear_time(hostile: str):
    text = hostile * (200_000 // len(hostile))
    started = time.perf_counter()
    regex_find_urls(text)
    assert time.perf_counter() - started < 5.0


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
