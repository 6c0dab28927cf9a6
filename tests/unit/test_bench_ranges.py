"""Inputs of the benchmarks, and ranges over several runs."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.__main__ import repeated, value_range
from tests.bench.inputs import PAGES, TASKS
from tests.bench.pages import page_text
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


def test_notes_have_ranges_if_only_their_numbers_differ() -> None:
    rows = [Row(what="rate", toolkit="", target="", ours="5/s", met=None, note=f"load {load}, idle") for load in (9, 7)]
    assert repeated([[row] for row in rows])[0].note == "load 7-9, idle"
    assert repeated([[rows[0]], [replace(rows[1], note="failed")]])[0].note == "failed"


def test_pages_have_the_shares_of_page_caches_in_the_field() -> None:
    places = [(task, place) for task in TASKS for place in task.places()]
    pdfs = sum(task.is_pdf(entry, source) for task, (_, entry, source) in places)
    missing = sum(task.is_missing(*place) for task, place in places)
    assert round(100 * pdfs / PAGES) == 3
    assert round(100 * missing / PAGES) == 2


def test_texts_are_between_one_line_and_a_book() -> None:
    sizes = [len(page_text(task.number(*place))) for task in TASKS for place in task.places()]
    assert 20 <= min(sizes) < 200
    assert 200_000 < max(sizes) <= 450_000
