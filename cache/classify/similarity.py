"""Similarity of two pages of a site: the cited page and the response of a random sibling URL."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from itertools import pairwise
from urllib.parse import unquote, urlsplit

MIN_SIMILARITY = 0.9
"""Minimum similarity of two pages that are treated as the same."""

_MAX_CHARS = 200_000
# Each character counts as a token in scripts that put no spaces between words.
_TOKEN = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_PASSING = re.compile(r"(?=.*\d)\w{4,}")
_SUFFIX = re.compile(r"\.[A-Za-z]{2,5}$")


def random_segment() -> str:
    """Return a path segment that no existing page uses."""
    return secrets.token_hex(8)


def sibling_url(url: str, segment: str) -> str:
    """Return a URL in the same folder with ``segment`` as its last segment. File extension and slash are preserved.

    >>> sibling_url("https://a.com/news/story.html?from=x#top", "zq81")
    'https://a.com/news/zq81.html?from=x'
    >>> sibling_url("https://a.com/news/story/", "zq81"), sibling_url("https://a.com", "zq81")
    ('https://a.com/news/zq81/', 'https://a.com/zq81')
    """
    parts = urlsplit(url)
    slash = "/" if parts.path.endswith("/") and parts.path != "/" else ""
    folder, _, name = parts.path.removesuffix(slash).rpartition("/")
    suffix = _SUFFIX.search(name)
    return parts._replace(path=f"{folder}/{segment}{suffix[0] if suffix else ''}{slash}", fragment="").geturl()


def text_similarity(text: str, url: str, other_text: str, other_url: str) -> float:
    """Return the similarity of two texts from 0 to 1: Dice's coefficient of their pairs of adjacent words.

    Pairs are used because such pages are short: with 40 words, one different word reduces the value by 0.05 with pairs
    and by 0.08 with triples. Words of the pages' own URLs and request ids are ignored, because error pages often
    repeat them.
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
