"""What judge scripts give as a source, as an address that can be asked for. Pure."""

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
    """The URL with a scheme, and escaped where it has white space; None where there can be no page.

    >>> address_of("a.com/my file"), address_of("see above")
    ('https://a.com/my%20file', None)
    """
    address = url if _SCHEME.match(url) else f"https://{url}"
    return _without_gaps(address) if _names_a_host(address) else None


def _names_a_host(address: str) -> bool:
    """Whether there could be a page: "N/A" or "see above" in place of a URL can be none."""
    try:
        host, _ = host_and_port(address)
    except ValueError:
        return not _HTTP.match(address)
    return _HOST.fullmatch(host) is not None


def _without_gaps(address: str) -> str:
    """As browsers send it: line ends and tabs not at all, other white space escaped."""
    return _SPACE.sub(lambda space: quote(space[0]), _LINE_ENDS.sub("", address))
