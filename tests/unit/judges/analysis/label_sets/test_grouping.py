from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.label_import import in_batches, row_key

ROWS = st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=50)), max_size=60)


@given(rows=ROWS, max_bytes=st.integers(0, 20_000))
def test_batches_contain_every_row_and_never_divide_a_key(rows, max_bytes) -> None:
    batches = list(in_batches(iter(rows), max_bytes=max_bytes))
    assert sorted(row for batch in batches for row in batch) == sorted(rows)
    keys = [{key for key, _ in batch} for batch in batches]
    assert sum(map(len, keys)) == len({key for key, _ in rows})


def test_few_rows_are_one_batch_in_their_order() -> None:
    rows = [(row_key(n % 3), bytes([n])) for n in range(10)]
    assert list(in_batches(rows)) == [rows]


def test_no_rows_are_no_batch() -> None:
    assert list(in_batches([])) == []
