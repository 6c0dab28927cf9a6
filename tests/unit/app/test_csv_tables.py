"""CSV tables without cells that a spreadsheet runs as formulas."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.csv_tables import escape_formula, to_csv


@pytest.mark.parametrize("cell", ["=1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "  =HYPERLINK(1)", "\uff1d1"])
def test_formula_is_escaped(cell: str):
    assert escape_formula(cell) == f"'{cell}"


@given(st.lists(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=2, max_size=2), max_size=6))
def test_every_row_is_read_back_without_formulas(rows: list[list[str]]):
    text = to_csv(("a", "b"), rows)
    read = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert len(read) == len(rows) + 1
    for cells in read[1:]:
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
