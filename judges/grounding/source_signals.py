"""Signals from the URLs of a source: who can publish there, and whether a link leads where it seems to.

Pure functions of the URLs; nothing is looked up. In the strict score, a page with a signal in
``DISQUALIFYING_SIGNALS`` cannot support a claim. Every signal is attached to the leaf. Those in
``SUSPICIOUS_SIGNALS`` require that the quotes cover the terms of the claim.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, unquote_plus, urlsplit

from cache.capture import Capture
from judges.grounding.folding import fold

_MIN_CHARS: Final = 12

_LATIN_CONFUSABLES = frozenset(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443\u03bf\u03bd\u0251\u0261\u0131"
)
"""Letters in host names that are indistinguishable from a Latin letter."""


class SourceSignal(StrEnum):
    """Signal about a cited URL or its redirects."""

    CREDENTIALS = "source_with_credentials"
    """``good.org@evil.org``: the visible name is not the host."""
    PASTE = "source_is_paste"
    """Anyone can publish there instantly and anonymously."""
    SHORTENER = "source_is_shortener"
    """The URL does not show its target, and its owner can change the target."""
    OPEN_REDIRECT = "source_is_open_redirect"
    """The cited site only redirects to a URL given in the citation."""
    LOOK_ALIKE = "source_host_looks_like_another"
    """The host name imitates a Latin name with letters of other scripts."""
    USER_CONTENT = "source_is_user_content"
    """A platform whose members write the content."""
    SEARCH = "source_is_search"
    """A list of search results, which repeats the query."""
    OTHER_SITE = "source_redirects_elsewhere"
    """The captured page belongs to another site than the cited one."""


DISQUALIFYING_SIGNALS: Final = frozenset(
    {
        SourceSignal.CREDENTIALS,
        SourceSignal.PASTE,
        SourceSignal.SHORTENER,
        SourceSignal.OPEN_REDIRECT,
        SourceSignal.LOOK_ALIKE,
    }
)
SUSPICIOUS_SIGNALS: Final = frozenset({SourceSignal.SEARCH})

_SEARCH_PATH = re.compile(r"/(?:search|suche|recherche|buscar|find|results|tag|tags|query)(?:[/.]|$)", re.IGNORECASE)
_SEARCH_FIELDS = frozenset({"q", "query", "search", "s", "p", "text", "keyword", "keywords", "search_query", "term"})
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "govt", "ne", "net", "or", "org"})


def source_signals(capture: Capture) -> frozenset[SourceSignal]:
    """Return the signals of a capture's URLs: cited, final, and the redirects between."""
    cited, reached = _parts(capture.url), _parts(capture.final_url or capture.url)
    if cited is None or reached is None:
        return frozenset()
    urls = [part for part in (cited, *map(_parts, capture.chain), reached) if part is not None]
    signals = set()
    if any("@" in part.netloc for part in urls):
        signals.add(SourceSignal.CREDENTIALS)
    if _is_listed(cited, "paste") or _is_listed(reached, "paste"):
        signals.add(SourceSignal.PASTE)
    if any(_is_listed(part, "shortener") for part in urls):
        signals.add(SourceSignal.SHORTENER)
    if any(looks_like_another(part.hostname or "") for part in urls):
        signals.add(SourceSignal.LOOK_ALIKE)
    if _is_listed(reached, "user_content"):
        signals.add(SourceSignal.USER_CONTENT)
    if _is_search(reached):
        signals.add(SourceSignal.SEARCH)
    if _site(cited) != _site(reached):
        signals.add(SourceSignal.OPEN_REDIRECT if _contains_host(cited, reached) else SourceSignal.OTHER_SITE)
    return frozenset(signals)


def url_texts(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the text that these URLs carry in query, fragment or search path, folded. Short values are omitted.

    >>> url_texts(["https://a.org/search/ida-norrstad-was-director", "https://a.org/?q=Ida+N&x=was+it+the+director"])
    ('ida norrstad was director', 'was it the director')
    """
    texts: list[str] = []
    for parts in filter(None, map(_parts, urls)):
        values = [value for _, value in parse_qsl(parts.query)]
        values.append(unquote_plus(parts.fragment.rpartition(":~:text=")[2]))
        searched = _SEARCH_PATH.search(parts.path)
        if searched is not None:
            values += re.sub(r"[-_+]", " ", unquote(parts.path[searched.end() :])).split("/")
        if not parse_qsl(parts.query):
            values.append(unquote_plus(parts.query))
        texts += [fold(value).text.strip(" \"'") for value in values]
    return tuple(dict.fromkeys(value for value in texts if len(value) >= _MIN_CHARS))


def looks_like_another(host: str) -> bool:
    """Return whether a host name under a Latin top-level domain uses letters indistinguishable from Latin ones.

    >>> looks_like_another("xn--80ak6aa92e.com"), looks_like_another("xn--mnchen-3ya.de")
    (True, False)
    """
    labels = host.lower().rstrip(".").split(".")
    if labels[-1].startswith("xn--"):
        return False
    for label in labels:
        try:
            unicode_label = label.encode("ascii").decode("idna") if label.startswith("xn--") else label
        except UnicodeError:
            return True
        foreign = {char for char in unicode_label if not char.isascii()}
        if foreign and foreign <= _LATIN_CONFUSABLES:
            return True
    return False


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    return parts if parts.hostname else None


@cache
def _hosts(name: str) -> frozenset[str]:
    with resources.files("judges").joinpath("source_hosts.toml").open("rb") as file:
        return frozenset(tomllib.load(file)[name])


def _is_listed(parts: SplitResult, name: str) -> bool:
    """Return whether the host or one of its parent domains is in the list ``name`` of source_hosts.toml."""
    hosts = _hosts(name)
    labels = (parts.hostname or "").removeprefix("www.").split(".")
    return any(".".join(labels[start:]) in hosts for start in range(len(labels) - 1))


def _is_search(parts: SplitResult) -> bool:
    has_query = any(name.lower() in _SEARCH_FIELDS and value for name, value in parse_qsl(parts.query))
    return bool(_SEARCH_PATH.search(parts.path)) or has_query


def _site(parts: SplitResult) -> str:
    """Return approximately the registrable domain. No public suffix list is used."""
    labels = (parts.hostname or "").rstrip(".").split(".")
    if labels[-1].isdigit() or len(labels) < 3:
        return ".".join(labels)
    return ".".join(labels[-3:] if labels[-2] in _SECOND_LEVEL else labels[-2:])


def _contains_host(cited: SplitResult, reached: SplitResult) -> bool:
    """Return whether the cited URL contains the host of the final one."""
    text = unquote(unquote(f"{cited.path}?{cited.query}#{cited.fragment}")).lower()
    return bool(reached.hostname) and str(reached.hostname).removeprefix("www.") in text
