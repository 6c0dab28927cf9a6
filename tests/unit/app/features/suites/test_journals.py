from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.errors import AppError
from app.features.suites.journals import FileJournal

RUN = {"suite": "s", "model": "m", "seed": 0}


def record(position: int, *, status: str = "scored", **more: Any) -> dict[str, Any]:
    return {"id": f"t:{position}", "position": position, "status": status, "trace": {"long": "x" * 50}} | more


async def write_journal(path: Path, *records: dict[str, Any]) -> None:
    journal = FileJournal.open(path, RUN)
    for one in records:
        await journal.store(one)
    journal.close()


async def test_stored_steps_are_known_to_the_next_run(tmp_path: Path):
    path = tmp_path / "new" / "steps.jsonl"
    await write_journal(path, record(1), record(0))
    journal = FileJournal.open(path, RUN)
    known = await journal.stored_records()
    assert {id: one["position"] for id, one in known.items()} == {"t:0": 0, "t:1": 1}
    assert all("trace" not in one for one in known.values())
    assert [one for one in journal.records()] == [record(0), record(1)]
    journal.close()


@pytest.mark.parametrize("cut", (1, 100))
async def test_truncated_last_line_is_removed(cut: int, tmp_path: Path):
    path = tmp_path / "steps.jsonl"
    await write_journal(path, record(0), record(1))
    path.write_bytes(path.read_bytes()[:-cut])
    await write_journal(path, record(2))
    journal = FileJournal.open(path, RUN)
    ids = set(await journal.stored_records())
    journal.close()
    assert "t:2" in ids
    assert ids <= {"t:0", "t:1", "t:2"}


async def test_journal_of_another_run_is_rejected_with_the_difference(tmp_path: Path):
    path = tmp_path / "steps.jsonl"
    await write_journal(path, record(0))
    with pytest.raises(AppError, match="different model, seed"):
        FileJournal.open(path, RUN | {"model": "other", "seed": 1})
    path.write_text('{"something": "else"}\n')
    with pytest.raises(AppError, match="not the journal of a run"):
        FileJournal.open(path, RUN)
