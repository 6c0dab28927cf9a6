from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.clock import SortableIdGenerator, SystemClock


class HandClock:
    """Shows what it was set to."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_the_system_clock_knows_its_zone():
    assert SystemClock().now().tzinfo is UTC


@given(st.lists(st.integers(-7_200_000, 7_200_000), min_size=2, max_size=50))
def test_names_sort_in_the_order_they_were_made_whatever_the_clock_does(steps: list[int]):
    clock = HandClock(NOON)
    ids = SortableIdGenerator(clock)
    made = []
    for milliseconds in steps:
        clock.time += timedelta(milliseconds=milliseconds)
        made.append(ids.new("job"))
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_names_made_later_by_another_process_sort_later():
    earlier = SortableIdGenerator(HandClock(NOON)).new("job")
    later = SortableIdGenerator(HandClock(NOON + timedelta(milliseconds=1))).new("job")
    assert earlier < later


def test_two_processes_do_not_make_the_same_name():
    assert SortableIdGenerator(HandClock(NOON)).new("job") != SortableIdGenerator(HandClock(NOON)).new("job")


def test_a_name_is_short_and_plain():
    name = SortableIdGenerator(HandClock(NOON)).new("sub")
    assert name.startswith("sub_")
    assert len(name) == 30
    assert name.isascii() and name == name.lower()
