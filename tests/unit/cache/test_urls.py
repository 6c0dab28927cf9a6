"""Normalization of URLs to keys, and URLs that may be fetched."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.urls import canonical_key, host_and_port, is_fetchable, same_page, unfetchable_reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.com/", "https://a.com"),
        ("https://www.a.com/p", "https://a.com/p"),
        ("https://A.COM/p", "https://a.com/p"),
        ("https://a.com./p", "https://a.com/p"),
        ("https://a.com/p#:~:text=found", "https://a.com/p"),
        ("https://a.com/p/", "https://a.com/p"),
        ("https://a.com:443/p", "https://a.com/p"),
        ("http://a.com:80/p", "https://a.com/p"),
        ("https://a.com/%C3%A9", "https://a.com/é"),
        ("https://bücher.example/x", "https://xn--bcher-kva.example/x"),
        ("https://en.example/Category%3aIt%27s_here%2C_now", "https://en.example/Category:It's_here,_now"),
        ("https://a.com/%40user?q=%21%2A", "https://a.com/@user?q=!*"),
        ("https://stra\u00dfe.example/x", "https://xn--strae-oqa.example/x"),
        ("https://STRA\u1e9eE.example:443/x", "https://stra\u00dfe.example/x"),
        ("https://a.com/p?q=a%20b&utm_x=1", "https://a.com/p?q=a+b"),
        ("https://a.com/p?UTM_Source=x", "https://a.com/p"),
        ("https://a.com/p/?fbclid=1", "https://a.com/p"),
        ("https://a.com/x?y", "https://a.com/x?y="),
        ("https://a.com/p?a=1&b=2&a=3", "https://a.com/p?a=1&a=3&b=2"),
        ("https://a.com/x/./y/../z", "https://a.com/x/z"),
        ("https://a.com?q=1", "https://a.com/?q=1"),
        ("  https://a.com/p \n", "https://a.com/p"),
    ],
)
def test_spellings_of_one_page_have_the_same_key(one: str, other: str) -> None:
    assert same_page(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.com/a%2Fb", "https://a.com/a/b"),
        ("https://a.com/a%26b", "https://a.com/a&b"),
        ("https://a.com/?q=a%26b", "https://a.com/?q=a&b"),
        ("https://a.com/?q=a%3Db", "https://a.com/?q=a=b"),
        ("https://a.com/?q=a%2Bb", "https://a.com/?q=a+b"),
        ("https://stra\u00dfe.example/", "https://strasse.example/"),
        ("https://a.com/C%2B%2B", "https://a.com/C  "),
        ("https://a.com/a%3Bb", "https://a.com/a;b"),
        ("https://a.com/a%3Fb", "https://a.com/a?b"),
        ("https://a.com/a%23b", "https://a.com/a#b"),
        ("https://a.com/a%25b", "https://a.com/a%b0"),
        ("https://a.com/#/r1", "https://a.com/#/r2"),
        ("https://a.com/#!/r1", "https://a.com/"),
        ("https://a.com/Path", "https://a.com/path"),
        ("https://a.com/?Q=1", "https://a.com/?q=1"),
        ("https://a.com/?q=X", "https://a.com/?q=x"),
        ("https://a.com/?a=1&a=2", "https://a.com/?a=2&a=1"),
        ("https://a.com:8080/", "https://a.com/"),
        ("https://b.a.com/", "https://a.com/"),
        ("https://www.com/", "https://com/"),
        ("https://a.com/x/?q=1", "https://a.com/x?q=1"),
        ("https://a.com//x", "https://a.com/x"),
        ("https://a.com/?ref=1", "https://a.com/?ref=2"),
        ("ftp://a.com/", "http://a.com/"),
    ],
)
def test_different_resources_have_different_keys(one: str, other: str) -> None:
    assert not same_page(one, other)


_PIECES = st.text(alphabet="aB9%2Ff&=+/?#.-_~é:@!\\ []|;'\"w", max_size=40)


@given(
    st.sampled_from(["http://", "https://", "HTTPS://", "", "ftp://"]),
    st.sampled_from(["", "www.", "www.www."]),
    _PIECES,
)
def test_normalization_is_idempotent_for_urls(scheme: str, prefix: str, rest: str) -> None:
    key = canonical_key(f"{scheme}{prefix}a.example{rest}")
    assert canonical_key(key) == key


@given(st.text(max_size=200))
def test_normalization_is_idempotent_for_any_text(text: str) -> None:
    assert canonical_key(canonical_key(text)) == canonical_key(text)
    unfetchable_reason(text)


@given(st.lists(st.sampled_from(["a=1", "b=2", "a=3", "c=%26", "d"]), max_size=6))
def test_tracking_parameters_do_not_change_the_key(pairs: list[str]) -> None:
    plain = "https://a.com/p" + ("?" + "&".join(pairs) if pairs else "")
    tracked = "https://a.com/p?" + "&".join(["utm_source=z", *pairs, "gclid=1"])
    assert canonical_key(plain) == canonical_key(tracked)


_NAMES = st.text(alphabet="aAbB0/&=+#?%. ~é'():;@,", min_size=1, max_size=5).filter(lambda name: name.strip(".") != "")
_RESOURCES = st.tuples(
    st.lists(_NAMES, max_size=3),
    st.lists(st.tuples(_NAMES, _NAMES), max_size=3, unique_by=lambda pair: pair[0]),
    st.one_of(st.just(""), _NAMES.map(lambda name: f"/{quote(name, safe='')}")),
)


def _url_of(resource: tuple[list[str], list[tuple[str, str]], str], escape: Callable[[str], str] = str) -> str:
    """Return a URL of a path, a query and a route, with all special characters escaped."""
    path, query, route = resource
    pairs = "&".join(f"{escape(quote(name, safe=''))}={escape(quote(value, safe=''))}" for name, value in query)
    place = "/".join(escape(quote(segment, safe="")) for segment in path)
    return f"a.com/{place}{'?' if pairs else ''}{pairs}{f'#{route}' if route else ''}"


@given(_RESOURCES, _RESOURCES)
def test_urls_share_a_key_only_if_they_name_the_same_resource(one, other) -> None:
    same = one == other
    assert same_page(f"https://{_url_of(one)}", f"https://{_url_of(other)}") == same


@given(
    _RESOURCES,
    st.sampled_from(["http://", "https://", "HTTPS://", "https://www.", "http://WWW."]),
    st.sampled_from([str, str.lower]),
)
def test_other_spelling_of_a_resource_has_the_same_key(resource, beginning: str, escapes: Callable[[str], str]) -> None:
    def lower_escapes(text: str) -> str:
        return re.sub(r"%[0-9A-F]{2}", lambda match: escapes(match[0]), text)

    other = _url_of(resource, lower_escapes)
    if not resource[2]:
        other += "#section"
    assert same_page(f"https://{_url_of(resource)}", f"{beginning}{other}")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://a.com/x",
        "data:text/html,hi",
        "about:blank",
        "a.com",
        "",
        "http://",
        "https:///path",
        "https://user:secret@a.com/",
        "https://good.org@evil.com/",
        "http://127.0.0.1\\@x.org/",
        "https://a.com/a b",
        "https://a.com/a\x00b",
        "https://a.com:99999/",
        "https://a%2ecom/",
        "https://[::1/",
        "https://a.com/" + "x" * 5000,
    ],
)
def test_unfetchable_url_is_rejected(url: str) -> None:
    assert not is_fetchable(url)
    assert unfetchable_reason(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://a.com",
        "HTTP://A.com/x?y#z",
        "http://[2001:db8::1]:8080/",
        "https://bücher.example/é",
    ],
)
def test_plain_web_url_is_fetchable(url: str) -> None:
    assert unfetchable_reason(url) is None


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://A.com/x", ("a.com", 80)),
        ("https://a.com:8443", ("a.com", 8443)),
        ("http://[::1]/", ("::1", 80)),
        ("https://bücher.example/", ("xn--bcher-kva.example", 443)),
    ],
)
def test_host_and_port_of_a_url(url: str, place: tuple[str, int]) -> None:
    assert host_and_port(url) == place


def test_url_without_a_host_raises() -> None:
    with pytest.raises(ValueError, match="no host"):
        host_and_port("mailto:x@a.com")


_PLAIN_URLS = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.example", "www.a.example", "www.www.a.example", "xn--bcher-kva.example", "127.0.0.1"]),
    st.sampled_from(["", ":80", ":443", ":8080", ":0080"]),
    st.from_regex(r"(/[A-Za-z0-9._~%+,;:@/-]{0,20})?", fullmatch=True),
    st.from_regex(r"(\?[A-Za-z0-9._~%+,;:@/&=-]{0,20})?(#[A-Za-z0-9._~/-]{0,8})?", fullmatch=True),
)


@given(_PLAIN_URLS)
def test_fast_path_gives_the_same_key_as_full_normalization(url: str) -> None:
    full_normalization = url.replace("http", "HTTP", 1)
    assert canonical_key(url) == canonical_key(full_normalization)
