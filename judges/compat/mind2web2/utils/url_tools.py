"""URL functions under the names that public task scripts import. Pure functions.

Our own cache uses ``cache.urls`` to decide whether two URLs are the same page. The rules here are those of the public
toolkit, on which scripts and the public page-cache layout rely.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from urllib.parse import ParseResult, parse_qsl, quote, unquote, urlencode, urlparse

from pydantic import BaseModel, Field

from cache.urls import has_long_authority
from mind2web2.page_keys import changes_when_decoded, storage_key
from mind2web2.utils.misc import normalize_url_markdown

__all__ = [
    "URLs",
    "normalize_url_for_browser",
    "normalize_url_keep_case",
    "normalize_url_simple",
    "page_form",
    "regex_find_urls",
    "remove_utm_parameters",
    "storage_key",
]

_UTM = "utm_"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ORIGIN = re.compile(rf"{_SCHEME.pattern}[\w.:@\[\]-]*")
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?", re.IGNORECASE)
_NAMED_HOST = re.compile(rf"https?://(?!www\.?[/?#]|www\.?$)(?:{_LABEL}\.)*{_LABEL}\.?(?=[/?#]|$)", re.IGNORECASE)
"""Fast path for URLs with a plain host. Most URLs match."""

_URL_START = re.compile(r"(?:https?://|(?<![\w/.@-])www\.)(?=[\w\[])", re.IGNORECASE)
_TYPOGRAPHIC_MARKS = "".join(map(chr, (0x00AB, 0x00BB, *range(0x200B, 0x2010), *range(0x2012, 0x2065), 0xFEFF)))
"""Quotation marks, dashes, ellipses and bullets, and characters without width. Not hyphens, which are in URLs."""
_CJK_MARKS = "".join(
    chr(code)
    for block in (
        range(0x3000, 0x3004),
        range(0x3008, 0x3021),
        range(0xFE30, 0xFE50),
        range(0xFF01, 0xFF10),
        range(0xFF1A, 0xFF21),
        range(0xFF3B, 0xFF41),
        range(0xFF5B, 0xFF66),
        (0x30FB,),
    )
    for code in block
)
_URL_ENDS = frozenset('<>"{}`^' + _TYPOGRAPHIC_MARKS + _CJK_MARKS)
_ESCAPED_IN_URL = frozenset("!#$%&'*+,-./:;=?@_|~()[]")
_PLAIN = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-./:=?@_~")
"""Characters that never end a URL."""
_SEPARATED_URL = re.compile(
    rf"[,;|](?:{_URL_START.pattern})|\|(?:[*_~([]{{1,8}}https?://|\[[^\[\]|\n]{{1,200}}\]\(https?://)", re.IGNORECASE
)
"""Separator before the next URL, which in the cell of a table can have emphasis or be a Markdown link."""
_OPENING = {")": "(", "]": "["}
_TRAILING = ".,;:!?*'|"
_EMPHASIS = "_~"
_MARKS_BEFORE = 16


class URLs(BaseModel):
    """URLs that a model found in a text."""

    urls: list[str] = Field(default_factory=list)


def remove_utm_parameters(url: str) -> str:
    """Remove ``utm_*`` query parameters from a URL, also escaped ones; everything else is unchanged.

    >>> remove_utm_parameters("https://a.com/p?q=a%20b&utm_source=x#top"), remove_utm_parameters("a.com?%75tm_x=1&id=5")
    ('https://a.com/p?q=a%20b#top', 'a.com?id=5')
    """
    address, hash_mark, fragment = url.partition("#")
    path, question_mark, query = address.partition("?")
    if not question_mark:
        return url
    params = "&".join(pair for pair in query.split("&") if not _is_utm(unquote(pair)))
    return f"{path}{'?' if params else ''}{params}{hash_mark}{fragment}"


def normalize_url_keep_case(url: str) -> str:
    """Return the public toolkit's normalized form of a URL, for comparison only, never for fetching.

    ``utm_*`` parameters and fragment removed, percent-decoded, one trailing slash removed, query re-encoded with values
    grouped by name, https, no ``www.``.

    >>> normalize_url_keep_case("http://www.Q.org/Pier/?utm_source=s#t"), normalize_url_keep_case("https://a.com/x?y")
    ('https://Q.org/Pier', 'https://a.com/x?y=')
    >>> normalize_url_keep_case("https://a.com/p?q=a%20b&%75tm_x=1")
    'https://a.com/p?q=a+b'
    >>> normalize_url_keep_case("https://a.com?a=1&b=2&a=3")
    'https://a.com?a=1&a=3&b=2'

    Raises:
        ValueError: The host is malformed.
    """
    key = storage_key(remove_utm_parameters(url))
    if has_long_authority(key):
        raise ValueError("The host has more than 1,024 characters.")
    parts = urlparse(key)
    grouped: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if not _is_utm(name):
            grouped.setdefault(name, []).append(value)
    query = urlencode(grouped, doseq=True, errors="replace")
    return _without_www(parts)._replace(query=query, fragment="").geturl()


def normalize_url_simple(url: str) -> str:
    """Return ``normalize_url_keep_case`` in lower case.

    >>> normalize_url_simple("http://www.Q.org/Pier/")
    'https://q.org/pier'

    Raises:
        ValueError: The host is malformed.
    """
    return normalize_url_keep_case(url).lower()


def page_form(url: str) -> str:
    """Return a form that is equal for the spellings of one page, as the page cache tells pages apart. Never raises.

    ``normalize_url_keep_case``, unless decoding would change the key of the page again: that form would be the one of
    another page, so the URL is kept as it is, without ``utm_*`` parameters, fragment, ``http:`` and ``www.``.

    >>> page_form("http://www.a.com/Pier/"), page_form("http://www.a.com/s?q=C%23&utm_id=1"), page_form("http://[x")
    ('https://a.com/Pier', 'https://a.com/s?q=C%23', 'http://[x')
    """
    try:
        if not changes_when_decoded(storage_key(url)):
            return normalize_url_keep_case(url)
        parts = urlparse(remove_utm_parameters(url).partition("#")[0])
    except ValueError:
        return url
    return _without_www(parts).geturl()


def _without_www(parts: ParseResult) -> ParseResult:
    """Return a URL with https instead of http, and without ``www.``."""
    host = parts.netloc[4:] if parts.netloc[:4].lower() == "www." else parts.netloc
    return parts._replace(scheme="https" if parts.scheme == "http" else parts.scheme, netloc=host)


def normalize_url_for_browser(url: str) -> str:
    """Convert a URL for a browser: trimmed, no Markdown backslashes, no ``utm_*`` parameters, with a scheme, escaped.

    An international host name is not escaped, because browsers convert it to Punycode.

    >>> normalize_url_for_browser(" www.a.com/P q?utm_id=1&x=ü ")
    'https://www.a.com/P%20q?x=%C3%BC'
    """
    cleaned = remove_utm_parameters(normalize_url_markdown(url))
    if cleaned and not _SCHEME.match(cleaned):
        cleaned = f"https://{cleaned.removeprefix('//')}"
    origin = _ORIGIN.match(cleaned)
    end = origin.end() if origin else 0
    return cleaned[:end] + quote(cleaned[end:], safe="%/:=&?~#+!$,;'@()*[]", errors="replace")


def regex_find_urls(text: str) -> list[str]:
    """Return the valid URLs in a text, in order and without repeats. Linear in the length of the text.

    A URL starts with ``http://``, ``https://`` or a ``www.`` that begins a word; ``www.…`` becomes ``https://www.…``.
    It ends at white space, at ``<>"{}``, a backtick or ``^``, at CJK or typographic punctuation, at a closing bracket
    that was not opened in it, and at a ``|``, comma or semicolon before the next URL. Markdown escapes and punctuation
    at the end are removed.

    >>> regex_find_urls("[a](https://w.org/M_(x)), **http://b.org/f?size[x]=1**, |https://a.org/1|https://a.org/2|")
    ['https://w.org/M_(x)', 'http://b.org/f?size[x]=1', 'https://a.org/1', 'https://a.org/2']
    """
    found: dict[str, None] = {}
    end = 0
    while start := _URL_START.search(text, end):
        written, end = _read_url(text, start.start(), start.end())
        url = _without_trailing_marks(written, before=text[max(0, start.start() - _MARKS_BEFORE) : start.start()])
        url = f"https://{url}" if url[:4].lower() == "www." else url
        if is_valid_url(url):
            found[url] = None
    return list(found)


def is_valid_url(url: str) -> bool:
    """Return whether a string is an http(s) URL with a well-formed host."""
    if _NAMED_HOST.match(url):
        return True
    if has_long_authority(url):
        return False
    try:
        parts = urlparse(url)
        host = parts.hostname or ""
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    return ":" in host or (_HOST.fullmatch(host) is not None and host.rstrip(".") != "www")


def _read_url(text: str, start: int, position: int) -> tuple[str, int]:
    """Return the URL that starts at ``start``, without its Markdown escapes, and the position of its end."""
    chars = [text[start:position]]
    opened: Counter[str] = Counter()
    length = len(text)
    while position < length:
        char = text[position]
        if char in _PLAIN:
            chars.append(char)
            position += 1
            continue
        width = 1
        if char == "\\":
            if position + 1 == length or text[position + 1] not in _ESCAPED_IN_URL:
                break
            char, width = text[position + 1], 2
        if char in _URL_ENDS or char.isspace() or char < " " or char == "\x7f":
            break
        if char in "([":
            opened[char] += 1
        elif char in ")]":
            if not opened[_OPENING[char]]:
                break
            opened[_OPENING[char]] -= 1
        elif char in ",;|" and _SEPARATED_URL.match(text, position):
            break
        chars.append(char)
        position += width
    return "".join(chars), position


def _without_trailing_marks(url: str, *, before: str) -> str:
    """Remove punctuation at the end of a URL, and emphasis marks if they are also in ``before``, directly before it."""
    marks = before[len(before.rstrip("*_~\\")) :]
    open_marks = {"_": marks.count("_"), "~": marks.count("~") // 2 * 2}
    while url:
        shorter = url.rstrip(_TRAILING + "([")
        last = shorter[-1:]
        width = 2 if last == "~" else 1
        if last and last in _EMPHASIS and shorter.endswith(last * width) and open_marks[last] >= width:
            open_marks[last] -= width
            shorter = shorter[:-width]
        if shorter == url:
            break
        url = shorter
    return url


def _is_utm(parameter: str) -> bool:
    return parameter[:4].lower() == _UTM
