"""Ranges over several runs of the benchmarks."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.__main__ import repeated, value_range
from tests.bench.row import Row


def test_range_has_the_lowest_and_highest_of_each_number() -> None:
    assert value_range(["14.0 ms, +3.0 % calls", "9.7 ms, +3.0 % calls"]) == "9.7-14.0 ms, +3.0 % calls"
    assert value_range(["198,200", "1,000"]) == "1,000-198,200"
    assert value_range(["20 ms"]) == "20 ms"
    assert value_range(["20 ms", "failed"]) == "20 ms | failed"


def test_target_is_met_only_if_every_run_meets_it() -> None:
    row = Row(what="memory", toolkit="241 MiB", target="<= 150 MiB", ours="140 MiB", met=True)
    missed = replace(row, ours="160 MiB", met=False, note="last")
    assert repeated([[row], [missed]]) == [replace(missed, ours="140-160 MiB")]
    assert repeated([[missed], [row]])[0].met is False
    assert repeated([[replace(row, met=None)], [row]])[0].met is None
    assert repeated([[row, missed], [missed]]) == [row, missed, missed]
