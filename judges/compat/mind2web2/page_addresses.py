"""Conversion of the sources that judge scripts give into fetchable URLs. Pure functions."""

from __future__ import annotations

import re
from urllib.parse import quote

from cache.urls import host_and_port

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HTTP = re.compile(r"https?:", re.IGNORECASE)
_HOST = re.compile(r"localhost|[a-z0-9_-]+(?:\.[a-z0-9_-]+)+|[0-9a-f.]*:[0-9a-f:.]+")
_LINE_ENDS = re.compile(r"[\t\r\n]")
_SPACE = re.compile(r"\s")


def address_of(url: str) -> str | None:
    """Return the URL with a scheme and escaped white space; None if it cannot be a page.

    >>> address_of("a.com/my file"), address_of("see above")
    ('https://a.com/my%20file', None)
    """
    address = url if _SCHEME.match(url) else f"https://{url}"
    return _escape_space(address) if _has_valid_host(address) else None


def _has_valid_host(address: str) -> bool:
    """Return whether the address has a valid host; "N/A" or "see above" has none."""
    try:
        host, _ = host_and_port(address)
    except ValueError:
        return not _HTTP.match(address)
    return _HOST.fullmatch(host) is not None


def _escape_space(address: str) -> str:
    """Remove line ends and tabs and escape other white space, as browsers do."""
    return _SPACE.sub(lambda space: quote(space[0]), _LINE_ENDS.sub("", address))
