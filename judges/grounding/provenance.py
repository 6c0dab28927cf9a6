"""What was extracted is checked by code: an address that occurs nowhere in what was read was made up, and goes; so
does an item of a list of which not one name or number occurs there.

Works on any pydantic value. What a text field says beyond that is a judge's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from pydantic import AnyUrl, BaseModel, ValidationError

from answers.citations import unique_urls
from cache.urls import canonical_key
from judges.grounding.folding import fold

S = TypeVar("S", bound=BaseModel)

_ADDRESS = re.compile(r"\s*(?:https?://|www\.)\S+\s*", re.IGNORECASE)
_TELLING = re.compile(r"\b(?:[A-Z]\w{2,}|\w*\d\w*)")
_GOES_ON = r"(?![\w/?&=%#-])"
_DROPPED: Final = object()


class Addresses:
    """The addresses that occur in a text and among links, and the words of the text."""

    def __init__(self, text: str, links: Iterable[str] = ()) -> None:
        self._text = text
        self._folded = fold(text).text
        self._keys = {canonical_key(_absolute(url)) for url in (*unique_urls(text), *links)}

    def __contains__(self, url: str) -> bool:
        """Whether ``url`` occurs, in whatever spelling of the same page, or stands in the text as it is."""
        trimmed = url.strip()
        if canonical_key(_absolute(trimmed)) in self._keys:
            return True
        return re.search(re.escape(trimmed) + _GOES_ON, self._text) is not None

    def knows_none_of(self, words: Iterable[str]) -> bool:
        """Whether there are words, and not one of them stands in the text."""
        folded = [fold(word).text for word in words]
        return bool(folded) and not any(word in self._folded for word in folded)


def drop_invented(value: S, known: Addresses) -> tuple[S, tuple[str, ...]]:
    """Return ``value`` without what is not ``known``, and what was dropped: addresses, and items of lists.

    In a list the entry goes; a field becomes None where its type allows that, else an empty text.

    Raises:
        pydantic.ValidationError: the class allows neither, so there is no honest value of it.
    """
    dropped: list[str] = []
    fields = _pruned(value.model_dump(by_alias=True), known, dropped, instead=None)
    if not dropped:
        return value, ()
    schema = type(value)
    try:
        return schema.model_validate(fields), tuple(dropped)
    except ValidationError:
        return schema.model_validate(_pruned(value.model_dump(by_alias=True), known, [], instead="")), tuple(dropped)


def _pruned(value: Any, known: Addresses, dropped: list[str], *, instead: str | None) -> Any:
    kept = _kept(value, known, dropped, instead=instead)
    return instead if kept is _DROPPED else kept


def _kept(value: Any, known: Addresses, dropped: list[str], *, instead: str | None) -> Any:
    if isinstance(value, str | AnyUrl):
        url = str(value)
        if _ADDRESS.fullmatch(url) and url not in known:
            dropped.append(url)
            return _DROPPED
        return value
    if isinstance(value, dict):
        return {key: _pruned(item, known, dropped, instead=instead) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        invented = [item for item in value if isinstance(item, dict) and _is_invented(item, known)]
        dropped += [", ".join(_texts(item)) for item in invented]
        items = [_kept(item, known, dropped, instead=instead) for item in value if item not in invented]
        return type(value)(item for item in items if item is not _DROPPED)
    return value


def _is_invented(item: dict[Any, Any], known: Addresses) -> bool:
    """Whether an item names something, and none of it occurs in what was read."""
    texts = list(_texts(item))
    if any(_ADDRESS.fullmatch(text) and text in known for text in texts):
        return False
    return known.knows_none_of(
        word for text in texts if not _ADDRESS.fullmatch(text) for word in _TELLING.findall(text)
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | AnyUrl):
        yield str(value)
    elif isinstance(value, dict | list | tuple | set | frozenset):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _absolute(url: str) -> str:
    return url if "://" in url else f"https://{url}"
