from __future__ import annotations

from cache.single_flight import LRUCache


def test_least_recently_used_value_is_evicted_first():
    recent: LRUCache[str, int] = LRUCache(30)
    for number, name in enumerate("abc"):
        recent.put(name, number, 10)
    assert recent.get("a") == 0
    recent.put("d", 3, 10)
    assert [recent.get(name) for name in "abcd"] == [0, None, 2, 3]


def test_value_that_is_too_large_evicts_no_other():
    recent: LRUCache[str, int] = LRUCache(30)
    recent.put("a", 1, 10)
    recent.put("b", 2, 31)
    assert [recent.get(name) for name in "ab"] == [1, None]


def test_newest_value_is_kept_with_keeps_newest():
    recent: LRUCache[str, int] = LRUCache(30, keeps_newest=True)
    recent.put("a", 1, 10)
    recent.put("b", 2, 100)
    assert [recent.get(name) for name in "ab"] == [None, 2]
    recent.put("c", 3, 10)
    assert [recent.get(name) for name in "bc"] == [None, 3]
