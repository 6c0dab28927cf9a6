"""Keys of pages in the public page-cache layout, and matching of different spellings of a URL. Pure functions.

``storage_key`` is the public rule and determines the file name. Because it percent-decodes, different pages can share a
key; ``CacheFileSys`` distinguishes them by ``cache.urls.canonical_key``. ``lenient_key`` is specific to this project.
It is equal for all spellings that the public look-up treats as variants, so one dict look-up replaces a search.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote

from cache.urls import host_and_port


def storage_key(url: str) -> str:
    """Return the key of a URL in ``index.json``: fragment removed, percent-decoded, one trailing slash removed.

    >>> storage_key("https://www.a.com/P%20q/?x=1#f")
    'https://www.a.com/P q/?x=1'
    """
    return unquote(url.partition("#")[0]).removesuffix("/")


def file_stems(key: str) -> tuple[str, ...]:
    """Return the possible file names of a key's page, without suffix. The first one is used for writing.

    The public toolkit applies ``storage_key`` to the key once more when it reads.

    >>> file_stems("https://www.a.com/P q/?x=1")
    ('742f864e02c7f4eb96614bc8738877c2',)
    """
    return tuple(dict.fromkeys(_md5(each) for each in (key, storage_key(key))))


def changes_when_decoded(key: str) -> bool:
    """Return whether a key would change if it were decoded again, as it would if it were taken for a URL.

    Such a key belongs to one spelling of a URL only.

    >>> changes_when_decoded(storage_key("a.com/?q=C%23")), changes_when_decoded(storage_key("a.com/P%20q"))
    (True, False)
    """
    return "#" in key or ("%" in key and unquote(key) != key)


def lenient_key(key: str) -> str:
    """Return a form of a storage key without scheme, ``www.``, trailing slashes, order of the query and ``utm_*``.

    The host is in lower case. Lower the whole form to ignore letter case.

    >>> lenient_key("HTTP://www.A.com/P q/?y=2&utm_id=7&x") == lenient_key("https://a.com/P q?x=&y=2")
    True
    """
    scheme, separator, rest = key.partition("://")
    if not separator:
        rest = key
    elif scheme.lower() not in ("http", "https"):
        rest = f"{scheme.lower()}://{rest}"
    address, _, query = rest.partition("?")
    host, slash, path = address.partition("/")
    path = f"{host.lower().removeprefix('www.')}{slash}{path}".rstrip("/")
    if not query:
        return path
    kept = "&".join(pair for pair in query.split("&") if pair[:4].lower() != "utm_").rstrip("/")
    params = sorted(pair if "=" in pair else f"{pair}=" for pair in kept.replace("+", " ").split("&") if pair)
    return f"{path}?{'&'.join(params)}" if params else path


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", errors="replace"), usedforsecurity=False).hexdigest()


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")  # not a host with a port
_HTTP = re.compile(r"https?:", re.IGNORECASE)
_HOST = re.compile(r"localhost|[a-z0-9_-]+(?:\.[a-z0-9_-]+)+|[0-9a-f.]*:[0-9a-f:.]+")
_LINE_ENDS = re.compile(r"[\t\r\n]")
_SPACES = re.compile(r"\s+")


def address_of(url: str) -> str | None:
    """Return the URL with a scheme and escaped white space; None if it cannot be a page.

    >>> address_of("a.com/my file"), address_of("see above")
    ('https://a.com/my%20file', None)
    """
    address = url if _SCHEME.match(url) else f"https://{url.removeprefix('//')}"
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
    return _SPACES.sub(lambda spaces: quote(spaces[0]), _LINE_ENDS.sub("", address))
