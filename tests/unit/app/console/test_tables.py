from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import app
from app.console.tables import PlainTable, plain_table
from tests.unit.app.console.test_scorecard import printed

SOURCES = Path(app.__file__).parent
AGENT, TASK = "my-very-long-research-agent-name-v17", "find_the_oldest_lighthouse_of_arle"
LONG = {
    "job": "job_01m8ap1eyd9zpms0s09nr20dnm",
    "result": "res_01m8ap1eyd9zpms0s09nr20dnm",
    "id": "key_01m8ap1eyd9zpms0s09nr20dnm",
    "agent": AGENT,
    "task": TASK,
    "agent or set": AGENT,
    "model": "azure/gpt-6-luna-2026-08-07-eu",
    "judge": "openai/gpt-6-luna with reasoning effort medium",
    "leaf": "succession/second_director/thesis_of_the_director",
    "where": "criteria/second_director/thesis_of_the_director",
    "status": "running capturing",
    "reason": "The provider rejects all requests since this morning.",
    "because": "the model or its parameters changed",
}
"""Long cells by column. All other columns contain figures."""
FIGURE = "0.5 to 0.8333"
WORDS = re.compile(r"[^\s_\-/.:@,]+")


def tables_of_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield (place, headings) of every table whose columns are written in its call."""
    for path in sorted(SOURCES.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "plain_table":
                names = [each.value for each in call.args if isinstance(each, ast.Constant)]
                if names and len(names) == len(call.args):
                    yield f"{path.relative_to(SOURCES)}:{call.lineno}", [str(name) for name in names]


TABLES = list(tables_of_commands())


def assert_words_are_whole(table: PlainTable, cells: list[str]) -> None:
    text = printed(table)
    assert max(map(len, text.splitlines())) <= 80, text
    assert "…" not in text, text
    words = set(WORDS.findall(text))
    assert {word for cell in cells for word in WORDS.findall(cell)} <= words, text


@pytest.mark.parametrize("headings", [headings for _, headings in TABLES], ids=[place for place, _ in TABLES])
def test_table_of_a_command_fits_80_columns_and_breaks_no_word(headings: list[str]) -> None:
    cells = [LONG.get(heading, FIGURE if len(headings) < 8 else "0.83") for heading in headings]
    table = plain_table(*headings)
    table.add_row(*cells)
    table.add_row(*("-" for _ in cells))

    assert_words_are_whole(table, [*headings, *cells])


def test_ids_stay_in_one_piece_if_a_word_is_too_long() -> None:
    table = plain_table("job", "agent")
    table.add_row(LONG["job"], "x" * 70)

    text = printed(table)
    assert LONG["job"] in text
    assert "xx…" in text
    assert max(map(len, text.splitlines())) <= 80
