"""URL functions under the names that public judge scripts import. Pure functions.

Our own cache uses ``cache.urls`` to decide whether two URLs are the same page. The rules here are those of the public
toolkit, on which scripts and the public page-cache layout rely.
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
# A bare URL must not have a port or a query directly after the host. Atomic groups prevent matching a shorter host.
_BARE = re.compile(rf"(?:https?://|(?<![\w@/.:-])www\.)(?>{_NAMED_HOST})(?![\w@-]|:\d|\?\S){_PATH}", re.IGNORECASE)
_START = r"((?:https?://|www\.)"
# Opening brackets are allowed inside brackets unless they start the next URL. Every character is read once.
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
    """URLs that a model found in a text."""

    urls: list[str] = Field(default_factory=list)


def remove_utm_parameters(url: str) -> str:
    """Remove ``utm_*`` query parameters from a URL; everything else is unchanged.

    >>> remove_utm_parameters("https://a.com/p?q=a%20b&utm_source=x#top")
    'https://a.com/p?q=a%20b#top'
    """
    address, hash_mark, fragment = url.partition("#")
    path, question_mark, query = address.partition("?")
    if not question_mark:
        return url
    params = "&".join(pair for pair in query.split("&") if not pair.lower().startswith("utm_"))
    return f"{path}{'?' if params else ''}{params}{hash_mark}{fragment}"


def normalize_url_simple(url: str) -> str:
    """Return the public toolkit's normalized form of a URL, for comparison only, never for fetching.

    ``utm_*`` parameters and fragment removed, percent-decoded, one trailing slash removed, query re-encoded with values
    grouped by name, https, no ``www.``, lower case.

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
    """Convert a URL for a browser: trimmed, without Markdown backslashes, with a scheme, escaped.

    >>> normalize_url_for_browser(" www.a.com/P q?x=ü ")
    'https://www.a.com/P%20q?x=%C3%BC'
    """
    cleaned = _ESCAPED_MARKDOWN.sub(r"\1", url.strip())
    if cleaned and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", cleaned):
        cleaned = f"https://{cleaned.removeprefix('//')}"
    return quote(cleaned, safe="%/:=&?~#+!$,;'@()*[]", errors="replace")


def regex_find_urls(text: str) -> list[str]:
    """Return the valid URLs in a text, unordered and without duplicates.

    URLs inside ``[](…)``, ``(…)``, ``<…>`` and quotes are complete. Bare URLs need a named host that is not directly
    followed by a port or a query; ``www.…`` becomes ``https://www.…``. Linear in the length of the text.
    """
    matches = [match[1] for pattern in _WRAPPED for match in pattern.finditer(text)]
    matches += _BARE.findall(text)
    urls = (_with_scheme(url.rstrip(_TRAILING)) for url in matches)
    return list({url for url in urls if _is_valid(url)})


def _with_scheme(url: str) -> str:
    return f"https://{url}" if url.lower().startswith("www.") else url


def _is_valid(url: str) -> bool:
    parts = _parse(url)
    if parts is None or parts.scheme not in ("http", "https"):
        return False
    try:
        host = parts.hostname or ""
        _ = parts.port  # raises if the port is not a number
    except ValueError:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.rstrip(".") and _HOST.fullmatch(host) is not None
    return True


def _parse(url: str) -> ParseResult | None:
    """Return the parts of a URL, or None if its host is malformed."""
    try:
        return urlparse(url)
    except ValueError:
        return None
