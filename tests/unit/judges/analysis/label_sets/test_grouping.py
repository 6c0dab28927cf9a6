from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.label_import import grouped_rows

ROWS = st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=50)), max_size=60)


@given(rows=ROWS)
def test_groups_contain_the_rows_of_one_key_in_order_of_first_appearance(rows) -> None:
    expected: dict[bytes, list[bytes]] = {}
    for key, content in rows:
        expected.setdefault(key, []).append(content)
    assert list(grouped_rows(iter(rows))) == list(expected.values())
