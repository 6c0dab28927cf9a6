from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.clock import SortableIdGenerator


class ManualClock:
    """Clock that the test sets."""

    def __init__(self, now: datetime) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@given(st.lists(st.integers(-7_200_000, 7_200_000), min_size=2, max_size=50))
def test_ids_sort_in_creation_order_even_if_the_clock_jumps(steps: list[int]):
    clock = ManualClock(NOON)
    ids = SortableIdGenerator(clock)
    made = []
    for milliseconds in steps:
        clock.time += timedelta(milliseconds=milliseconds)
        made.append(ids.new("job"))
    assert made == sorted(made)
    assert len(set(made)) == len(made)
