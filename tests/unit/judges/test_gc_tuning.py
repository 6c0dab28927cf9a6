from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from judges.gc_tuning import GC_THRESHOLDS, raised_gc_thresholds

OWN = (700, 10, 10)


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*before)


def test_thresholds_are_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError), raised_gc_thresholds():
        assert gc.get_threshold() == GC_THRESHOLDS
        _ = 1 / 0
    assert gc.get_threshold() == OWN


def test_last_of_two_overlapping_blocks_restores_the_thresholds():
    first, second = raised_gc_thresholds(), raised_gc_thresholds()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == GC_THRESHOLDS
    second.__exit__(None, None, None)
    assert gc.get_threshold() == OWN


@pytest.mark.parametrize("own", [(0, 10, 10), (100_000, 5, 5)], ids=["never", "more seldom"])
def test_higher_thresholds_are_not_changed(own: tuple[int, int, int]):
    gc.set_threshold(*own)
    with raised_gc_thresholds():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_thresholds_set_inside_the_block_are_not_overwritten():
    with raised_gc_thresholds():
        gc.set_threshold(1000, 10, 10)
    assert gc.get_threshold() == (1000, 10, 10)
