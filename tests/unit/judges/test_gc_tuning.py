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


def test_a_program_has_its_own_thresholds_again_however_the_block_ends():
    with pytest.raises(ZeroDivisionError), raised_gc_thresholds():
        assert gc.get_threshold() == GC_THRESHOLDS
        _ = 1 / 0
    assert gc.get_threshold() == OWN


def test_of_blocks_that_overlap_the_last_one_sets_them_back():
    first, second = raised_gc_thresholds(), raised_gc_thresholds()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == GC_THRESHOLDS
    second.__exit__(None, None, None)
    assert gc.get_threshold() == OWN


@pytest.mark.parametrize("own", [(0, 10, 10), (100_000, 5, 5)], ids=["never", "more seldom"])
def test_a_program_that_collects_more_seldom_goes_on_so(own: tuple[int, int, int]):
    gc.set_threshold(*own)
    with raised_gc_thresholds():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_is_set_meanwhile_stays():
    with raised_gc_thresholds():
        gc.set_threshold(1000, 10, 10)
    assert gc.get_threshold() == (1000, 10, 10)
