"""Provenance check of extracted values: removes URLs and list items that do not occur in the source text.

A URL that occurs nowhere in the source was invented by the model. A list item is removed if none of its names and
numbers occurs there. Works on any pydantic value. Other content of text fields is checked by verification, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from pydantic import AnyUrl, BaseModel, ValidationError

from answers.citations import unique_urls
from cache.urls import canonical_key
from judges.grounding.folding import fold

S = TypeVar("S", bound=BaseModel)

_ADDRESS = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)
_NAME_OR_NUMBER = re.compile(r"\b(?:[A-Z]\w{2,}|\w*\d\w*)")
_URL_CHAR = re.compile(r"[\w/?&=%#-]")
_MAX_SEARCHED_CHARS: Final = 100_000_000
"""Limit of searched characters. Hundreds of values that a long page does not contain are within it."""
_LEAST_SEARCHED_CHARS: Final = 4_000
"""Cost of a search in a short text, because folding a word or computing a key takes longer than the search."""
_DROPPED: Final = object()


class KnownUrls:
    """URLs that occur in a text and among links, and the words of the text.

    Values are searched in the text until ``_MAX_SEARCHED_CHARS`` characters have been searched. After that, URLs count
    as unknown and words as known.
    """

    def __init__(self, text: str, links: Iterable[str] = ()) -> None:
        self._text = text
        self._folded = fold(text).text
        self._searchable = _MAX_SEARCHED_CHARS
        self._keys = {canonical_key(_absolute(url)) for url in (*unique_urls(text), *links)}

    def __contains__(self, url: str) -> bool:
        """Return whether ``url`` occurs in any spelling of the same page, or literally in the text."""
        trimmed = url.strip()
        if not self._may_search(_LEAST_SEARCHED_CHARS):
            return False
        if canonical_key(_absolute(trimmed)) in self._keys:
            return True
        return bool(trimmed) and self._may_search(len(self._text)) and self._occurs(trimmed)

    def knows_none_of(self, words: Iterable[str]) -> bool:
        """Return whether there are words and none of them occurs in the text."""
        has_words = False
        for word in words:
            has_words = True
            if not self._may_search(max(len(self._text), _LEAST_SEARCHED_CHARS)) or fold(word).text in self._folded:
                return False
        return has_words

    def _occurs(self, url: str) -> bool:
        """Return whether the text contains this URL, and not only as the beginning of a longer one."""
        at = self._text.find(url)
        while at >= 0:
            if not _URL_CHAR.match(self._text, at + len(url)):
                return True
            at = self._text.find(url, at + 1)
        return False

    def _may_search(self, chars: int) -> bool:
        self._searchable -= chars
        return self._searchable >= 0


def drop_invented(value: S, known: KnownUrls) -> tuple[S, tuple[str, ...]]:
    """Return ``value`` without invented URLs and list items, and what was removed.

    In a list, the entry is removed. A field becomes None if its type allows it, else an empty string.

    Raises:
        pydantic.ValidationError: the class allows neither.
    """
    dropped: list[str] = []
    fields = _pruned(value.model_dump(by_alias=True, warnings=False), known, dropped, replacement=None)
    if not dropped:
        return value, ()
    schema = type(value)
    try:
        return schema.model_validate(fields), tuple(dropped)
    except ValidationError:
        return schema.model_validate(
            _pruned(value.model_dump(by_alias=True, warnings=False), known, [], replacement="")
        ), tuple(dropped)


def _pruned(value: Any, known: KnownUrls, dropped: list[str], *, replacement: str | None) -> Any:
    pruned = _kept(value, known, dropped, replacement=replacement)
    return replacement if pruned is _DROPPED else pruned


def _kept(value: Any, known: KnownUrls, dropped: list[str], *, replacement: str | None) -> Any:
    if isinstance(value, str | AnyUrl):
        url = str(value)
        if _ADDRESS.fullmatch(url) and url not in known:
            dropped.append(url)
            return _DROPPED
        return value
    if isinstance(value, dict):
        return {key: _pruned(item, known, dropped, replacement=replacement) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        listed = []
        for item in value:
            if isinstance(item, dict) and _is_invented(texts := _texts(item), known):
                dropped.append(", ".join(texts))
            elif (kept := _kept(item, known, dropped, replacement=replacement)) is not _DROPPED:
                listed.append(kept)
        return type(value)(listed)
    return value


def _is_invented(texts: Iterable[str], known: KnownUrls) -> bool:
    """Return whether an item with these texts has names or numbers and none of them occurs in the source."""
    words: list[str] = []
    for text in texts:
        if not _ADDRESS.fullmatch(text):
            words += _NAME_OR_NUMBER.findall(text)
        elif text in known:
            return False
    return known.knows_none_of(words)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, AnyUrl):
        return [str(value)]
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return []
    return [text for item in (value.values() if isinstance(value, dict) else value) for text in _texts(item)]


def _absolute(url: str) -> str:
    return url if "://" in url else f"https://{url}"
