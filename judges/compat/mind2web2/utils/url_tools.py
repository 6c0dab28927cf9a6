"""URL functions under the names public judge scripts import. Pure.

What decides in our own cache when two URLs mean one page is ``cache.urls``; the rules here are those of the
public toolkit, which scripts and the public page-cache layout rely on.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import ParseResult, parse_qs, quote, unquote, urlencode, urlparse

from pydantic import BaseModel, Field

__all__ = ["URLs", "normalize_url_for_browser", "normalize_url_simple", "regex_find_urls", "remove_utm_parameters"]

_TRAILING = ".,;:!?)]}>\"'"
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_NAMED_HOST = rf"(?:{_LABEL}\.)+[^\W\d_][\w-]{{0,61}}[^\W_]"
_PATH = r"(?:/[^\s<>\"`|\[\]\\]*+)?"
# A port or a query straight after the host means that this is no bare URL; the host must not be cut short to avoid it.
_BARE = re.compile(rf"(?:https?://|(?<![\w@/.:-])www\.)(?>{_NAMED_HOST})(?![\w@-]|:\d|\?\S){_PATH}", re.IGNORECASE)
_START = r"((?:https?://|www\.)"
# Inside brackets an opening one may stand, but not one that opens the next URL: each character is read once.
_BRACKETED = _START + r"(?>(?:[^\s()]|\((?!https?:|www\.))*))"
_WRAPPED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\]\({_BRACKETED}[\s)]",
        rf"\({_BRACKETED}\)",
        rf"<{_START}[^\s<>]*+)>",
        rf"\"{_START}[^\s\"]*+)\"",
        rf"'{_START}[^\s']*+)'",
    )
)
_ESCAPED_MARKDOWN = re.compile(r"\\([_()\[\]*#!&?])")
_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?", re.IGNORECASE)


class URLs(BaseModel):
    """The URLs a model found in a text."""

    urls: list[str] = Field(default_factory=list)


def remove_utm_parameters(url: str) -> str:
    """The URL without its ``utm_*`` query parameters; everything else stays as it is written.

    >>> remove_utm_parameters("https://a.com/p?q=a%20b&utm_source=x#top")
    'https://a.com/p?q=a%20b#top'
    """
    address, hash_mark, fragment = url.partition("#")
    path, question_mark, query = address.partition("?")
    if not question_mark:
        return url
    kept = "&".join(pair for pair in query.split("&") if not pair.lower().startswith("utm_"))
    return f"{path}{'?' if kept else ''}{kept}{hash_mark}{fragment}"


def normalize_url_simple(url: str) -> str:
    """The public toolkit's forgiving form of a URL: for comparing, never for fetching.

    ``utm_*`` dropped, fragment cut, decoded, one end slash cut, query re-encoded with the values of one name
    brought together, https, no ``www.``, lower case.

    >>> normalize_url_simple("http://a.com/"), normalize_url_simple("https://a.com/x?y")
    ('https://a.com', 'https://a.com/x?y=')
    >>> normalize_url_simple("https://a.com/p?q=a%20b&utm_x=1")
    'https://a.com/p?q=a+b'
    >>> normalize_url_simple("https://a.com?a=1&b=2&a=3")
    'https://a.com?a=1&a=3&b=2'
    """
    decoded = unquote(remove_utm_parameters(url).partition("#")[0]).removesuffix("/")
    parts = _parse(decoded)
    if parts is None:
        return decoded.lower()
    query = urlencode(parse_qs(parts.query, keep_blank_values=True), doseq=True, errors="replace")
    scheme = "https" if parts.scheme == "http" else parts.scheme
    host = parts.netloc
    if host.lower().startswith("www."):
        host = host[4:]
    return parts._replace(scheme=scheme, netloc=host, query=query, fragment="").geturl().lower()


def normalize_url_for_browser(url: str) -> str:
    """A URL as a browser can be sent to it: trimmed, markdown backslashes gone, with a scheme, escaped.

    >>> normalize_url_for_browser(" www.a.com/P q?x=ü ")
    'https://www.a.com/P%20q?x=%C3%BC'
    """
    cleaned = _ESCAPED_MARKDOWN.sub(r"\1", url.strip())
    if cleaned and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", cleaned):
        cleaned = f"https://{cleaned.removeprefix('//')}"
    return quote(cleaned, safe="%/:=&?~#+!$,;'@()*[]", errors="replace")


def regex_find_urls(text: str) -> list[str]:
    """The valid URLs in a text, without order or repeats.

    Whole inside ``[](…)``, ``(…)``, ``<…>`` and quotes. Bare ones only with a named host that neither a port
    nor a query follows straight away; ``www.…`` becomes ``https://www.…``. Linear in the text's length.
    """
    found = [match[1] for pattern in _WRAPPED for match in pattern.finditer(text)]
    found += _BARE.findall(text)
    urls = (_with_scheme(url.rstrip(_TRAILING)) for url in found)
    return list({url for url in urls if _is_valid(url)})


def _with_scheme(url: str) -> str:
    return f"https://{url}" if url.lower().startswith("www.") else url


def _is_valid(url: str) -> bool:
    parts = _parse(url)
    if parts is None or parts.scheme not in ("http", "https"):
        return False
    try:
        host = parts.hostname or ""
        _ = parts.port  # property that raises for a port that is no number
    except ValueError:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.rstrip(".") and _HOST.fullmatch(host) is not None
    return True


def _parse(url: str) -> ParseResult | None:
    """The parts of a URL, or None where brackets or odd characters in the host make it none."""
    try:
        return urlparse(url)
    except ValueError:
        return None
