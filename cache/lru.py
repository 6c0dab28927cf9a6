"""LRU cache bounded by the total size of its values in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """LRU cache with a size limit, for one event loop.

    ``keeps_newest``: keep the most recently added value even if it exceeds the limit.
    """

    def __init__(self, max_bytes: int, *, keeps_newest: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keeps_newest = keeps_newest
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """Total size of the cached values."""
        return self._bytes

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is None:
            return None
        self._entries.move_to_end(key)
        return value[0]

    def clear(self) -> None:
        """Evict all values."""
        self._entries.clear()
        self._bytes = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Add a value of ``size`` bytes. Evict the least recently used values if necessary."""
        if size > self._max_bytes and not self._keeps_newest:
            return
        _, before = self._entries.pop(key, (None, 0))
        self._entries[key] = value, size
        self._bytes += size - before
        while self._bytes > self._max_bytes and len(self._entries) > self._keeps_newest:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed
