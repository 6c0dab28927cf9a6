"""How alike two pages are that one site shows for two addresses, one of them made up."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from itertools import pairwise
from urllib.parse import unquote, urlsplit

SAME = 0.9
"""From this likeness on two pages are one."""

_MAX_CHARS = 200_000
# Letters of scripts that put no spaces between words stand for themselves.
_TOKEN = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_PASSING = re.compile(r"(?=.*\d)\w{4,}")
_SUFFIX = re.compile(r"\.[A-Za-z]{2,5}$")


def random_segment() -> str:
    """A name that no page has."""
    return secrets.token_hex(8)


def sibling_of(url: str, segment: str) -> str:
    """The address in the same folder whose last segment is ``segment``, as far as its form goes like the one there.

    >>> sibling_of("https://a.com/news/story.html?from=x#top", "zq81")
    'https://a.com/news/zq81.html?from=x'
    >>> sibling_of("https://a.com/news/story/", "zq81"), sibling_of("https://a.com", "zq81")
    ('https://a.com/news/zq81/', 'https://a.com/zq81')
    """
    parts = urlsplit(url)
    slash = "/" if parts.path.endswith("/") and parts.path != "/" else ""
    folder, _, name = parts.path.removesuffix(slash).rpartition("/")
    suffix = _SUFFIX.search(name)
    return parts._replace(path=f"{folder}/{segment}{suffix[0] if suffix else ''}{slash}", fragment="").geturl()


def likeness(text: str, url: str, other_text: str, other_url: str) -> float:
    """The share of pairs of neighbouring words that two texts have in common, 0 to 1 (Dice's coefficient).

    Pairs, because such pages are short: of one of 40 words a single other word costs 0.05, in runs of three 0.08. The
    words of each page's own address and numbers of requests are left out, since pages that say that there is nothing
    like to say where.
    """
    pairs, other = (Counter(_pairs(each, at)) for each, at in ((text, url), (other_text, other_url)))
    total = pairs.total() + other.total()
    return 2 * (pairs & other).total() / total if total else 0.0


def _pairs(text: str, url: str) -> list[tuple[str, str]]:
    address = set(_tokens(unquote(urlsplit(url).path)))
    kept = [token for token in _tokens(text) if token not in address and not _PASSING.fullmatch(token)]
    return list(pairwise(["", *kept]))


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text[:_MAX_CHARS].casefold())
