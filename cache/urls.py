"""Page keys: decides which URLs identify the same page and which URLs may be fetched.

A key is only for lookups and must not be fetched. It ignores differences that do not change the page (scheme, ``www.``,
default port, tracking parameters, unnecessary escapes, one trailing slash). It preserves everything that can identify
another resource (reserved escapes such as %2F and %26, letter case in paths, ``#/route``, parameter values).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from w3lib.url import safe_url_string

MAX_URL_CHARS = 4096
MAX_KEY_CHARS = 65_536
"""Longer URLs are not normalized. With all characters escaped, a URL that may be fetched has at most 49,152."""
DEFAULT_PORTS = frozenset({80, 443})

_TRACKING_PARAMETERS = frozenset(
    {"fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid", "ttclid", "igshid"}
    | {"mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "srsltid"}
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_EQUIVALENT = _UNRESERVED | frozenset("!'()*,:@")
"""Characters that are equivalent escaped and unescaped: unreserved ones, and others that servers do not distinguish."""
_AUTHORITY = re.compile(r"(https?:/+)([^/?#\\]*)", re.IGNORECASE)
_IDNA_DEVIATIONS = re.compile("[\u00df\u1e9e\u03c2]")
"""Letters that IDNA 2003 mapped to others and IDNA 2008 preserves in host names: sharp s, final sigma."""
_SIMPLE_URL = re.compile(
    r"https?://((?:[a-z0-9-]{1,63}\.){0,8}[a-z0-9-]{1,63})(?::([0-9]{1,4}))?"
    r"(/[A-Za-z0-9._~%+,;:@/-]*+)?(?:\?([A-Za-z0-9._~%+,;:@/&=-]*+))?(?:#([A-Za-z0-9._~/-]*+))?"
)
"""Fast path: host, port, path, query and fragment of URLs that need no escaping. Most URLs match."""
_LONG_AUTHORITY = re.compile(r"[^/?#]*/[\t\r\n]*/[^/?#]{1025}")
"""More than 1,024 characters of host, port and credentials. The longest host name has 253 characters in ASCII."""
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_HOST = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]")


_CACHED_CHARS = 1000


def canonical_key(url: str) -> str:
    """Return the lookup key of a URL. Total and idempotent.

    Other strings than http(s) URLs, and URLs of more than ``MAX_KEY_CHARS`` characters, are only stripped.

    >>> canonical_key("http://www.Example.com:80/a/../P%7eq/?utm_source=x&b=2#top")
    'https://example.com/P~q/?b=2'
    >>> canonical_key("http://a.com/") == canonical_key("https://a.com")
    True
    >>> canonical_key("https://a.com/p?q=a%20b") == canonical_key("https://a.com/p?q=a+b")
    True
    >>> canonical_key("https://a.com/p?a=1&b=2&a=3")
    'https://a.com/p?a=1&a=3&b=2'
    >>> canonical_key("https://a.com/a%2Fb") == canonical_key("https://a.com/a/b")
    False
    >>> canonical_key("https://a.com/?q=a%26b") == canonical_key("https://a.com/?q=a&b")
    False
    >>> canonical_key("https://app.com/#/r1") == canonical_key("https://app.com/#/r2")
    False
    >>> canonical_key("a.com/b")
    'a.com/b'
    """
    return _cached_key(url) if len(url) <= _CACHED_CHARS else _key(url)


def _key(url: str) -> str:
    trimmed = url.strip()
    if len(trimmed) > MAX_KEY_CHARS:
        return trimmed
    plain = _SIMPLE_URL.fullmatch(trimmed)
    if plain is not None:
        host, number, path, query, fragment = plain.groups("")
        port = int(number) if number else None
    else:
        parts = _split(trimmed)
        if parts is None:
            return trimmed
        host, port, path, query, fragment = _host(parts), parts.port, parts.path, parts.query, parts.fragment
    path = normal_path(path)
    query = _normal_query(query)
    fragment = _normal_fragment(fragment)
    if not query and not fragment:
        path = path.rstrip("/")
    elif not path:
        path = "/"
    return f"https://{_normal_host(host, port)}{path}{f'?{query}' if query else ''}{f'#{fragment}' if fragment else ''}"


_cached_key = lru_cache(maxsize=4096)(_key)
"""Cached keys of URLs of usual length: an answer looks each of its URLs up several times."""


def same_page(one: str, other: str) -> bool:
    """Return whether two URLs identify the same page.

    >>> same_page("http://www.a.com/p/", "https://a.com/p#intro")
    True
    """
    return canonical_key(one) == canonical_key(other)


def unfetchable_reason(url: str, *, max_chars: int = MAX_URL_CHARS) -> str | None:
    """Return why a URL may not be fetched, or None. The egress proxy checks the address that it resolves to.

    >>> unfetchable_reason("file:///etc/passwd")
    'only http and https addresses are fetched'
    >>> unfetchable_reason("https://example.com/")
    """
    if len(url) > max_chars:
        return f"the address is longer than {max_chars} characters, which is the maximum"
    if _CONTROL.search(url.strip()):
        return "the address contains white space or control characters"
    if not re.match(r"https?://", url.strip(), re.IGNORECASE):
        return "only http and https addresses are fetched"
    # Browsers treat a backslash as a slash and most libraries do not, so they would see different hosts.
    if "\\" in re.split(r"[?#]", url, maxsplit=1)[0]:
        return "the address contains a backslash"
    parts = _split(url.strip())
    if parts is None:
        return "the address has no valid host"
    if "@" in parts.netloc:
        return "the address contains credentials"
    return None


def is_fetchable(url: str) -> bool:
    """Return whether a URL may be fetched.

    >>> is_fetchable("https://example.com/a"), is_fetchable("javascript:alert(1)"), is_fetchable("https://a@b/")
    (True, False, False)
    """
    return unfetchable_reason(url) is None


def host_and_port(url: str) -> tuple[str, int]:
    """Return the host (ASCII, lower case, no brackets) and port of an http(s) URL.

    >>> host_and_port("https://Example.com/x")
    ('example.com', 443)

    Raises:
        ValueError: it is not an http(s) URL with a host.
    """
    parts = _split(url.strip())
    if parts is None:
        raise ValueError(f"no host in {url[:100]!r}")
    return _host(parts).strip("[]"), parts.port or (80 if parts.scheme == "http" else 443)


def has_long_authority(url: str) -> bool:
    """Return whether host, port and credentials together are too long for a URL.

    ``urlsplit`` normalizes them in quadratic time: 9 minutes for 1 MiB of combining marks.

    >>> has_long_authority("https://a.example/" + "a" * 2000), has_long_authority("//" + "a" * 2000)
    (False, True)
    """
    return _LONG_AUTHORITY.match(url) is not None


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address.

    >>> is_loopback("localhost"), is_loopback("[::1]"), is_loopback("127.0.0.1.example.org")
    (True, True, False)
    """
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult | None:
    """Split an http(s) URL, with escapes as in browsers and IDN as punycode. None if the host is not valid."""
    if not re.match(r"https?://", url, re.IGNORECASE) or has_long_authority(url):
        return None
    try:
        parts = urlsplit(safe_url_string(_encode_deviations(url)))
        _ = parts.port  # raises ValueError if the port is not a number
    except (ValueError, UnicodeError):
        return None
    return parts if _HOST.fullmatch(_host(parts)) else None


def _encode_deviations(url: str) -> str:
    """Encode the host labels that IDNA 2003 would map to those of another host as punycode."""
    authority = _AUTHORITY.match(url)
    if authority is None or not _IDNA_DEVIATIONS.search(authority[2]):
        return url
    user, at, place = authority[2].rpartition("@")
    labels = [_punycode(label) if _IDNA_DEVIATIONS.search(label) else label for label in place.split(".")]
    return f"{authority[1]}{user}{at}{'.'.join(labels)}{url[authority.end() :]}"


def _punycode(label: str) -> str:
    name, colon, port = unicodedata.normalize("NFC", label.lower()).partition(":")
    return f"xn--{name.encode('punycode').decode('ascii')}{colon}{port}"


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return f"[{host}]" if ":" in host else host


def _normal_host(host: str, port: int | None) -> str:
    while host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return host if port is None or port in DEFAULT_PORTS else f"{host}:{port}"


def _normal_escapes(text: str) -> str:
    """Unescape characters that need no escaping, convert other escapes to upper case, escape stray percent signs."""
    if "%" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if char in _EQUIVALENT else match[0].upper()

    return _ESCAPE.sub(one, _STRAY_PERCENT.sub("%25", text))


def normal_path(path: str) -> str:
    """Normalize escapes and remove dot segments (RFC 3986, section 5.2.4). Empty segments are preserved."""
    output: list[str] = []
    segments = _normal_escapes(path).split("/")
    for place, segment in enumerate(segments):
        if segment in {".", ".."}:
            if segment == ".." and len(output) > 1:
                output.pop()
            if place == len(segments) - 1:
                output.append("")
        else:
            output.append(segment)
    return "/".join(output)


def _normal_query(query: str) -> str:
    """Remove tracking parameters and group equal names at their first position. Otherwise the order is preserved."""
    grouped: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if not pair:
            continue
        name, _, value = _normal_escapes(pair).replace("%20", "+").partition("=")
        if name.lower().startswith("utm_") or name.lower() in _TRACKING_PARAMETERS:
            continue
        grouped.setdefault(name, []).append(value)
    return "&".join(f"{name}={value}" for name, values in grouped.items() for value in values)


def _normal_fragment(fragment: str) -> str:
    """Return a fragment that is a route (#/… or #!…), else an empty string. Text directives are removed."""
    output = _normal_escapes(fragment.partition(":~:")[0])
    return output if output.startswith(("/", "!")) else ""
