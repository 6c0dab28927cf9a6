from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.label_import import in_batches

ROWS = st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=50)), max_size=60)


@given(rows=ROWS, max_bytes=st.integers(0, 20_000))
def test_batches_contain_every_row_and_never_divide_a_key(rows, max_bytes) -> None:
    batches = list(in_batches(iter(rows), max_bytes=max_bytes))
    assert sorted(row for batch in batches for row in batch) == sorted(rows)
    keys = [{key for key, _ in batch} for batch in batches]
    assert sum(map(len, keys)) == len({key for key, _ in rows})
