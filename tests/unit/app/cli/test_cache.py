from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from judges.llm.cached import FolderReplyCache
from judges.llm.client import LLMReply
from rubrics.verdict import Usage
from tests.unit.app.conftest import RunCommand

pytestmark = pytest.mark.slow

DAY_S = 86_400


def store(folder: Path, number: int, model: str, *, days_old: int = 0) -> None:
    key = f"{number:064x}"
    reply = LLMReply(text="{}", parsed=None, model=model, usage=Usage(calls=1))
    asyncio.run(FolderReplyCache(folder).put(key, reply))
    used = time.time() - days_old * DAY_S
    os.utime(folder / key[:2] / f"{key}.json", (used, used))


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    """Create three cached replies in the data folder, two of them old."""
    folder = tmp_path / "data" / "replies"
    for number, days_old in enumerate((40, 0, 40)):
        store(folder, number, "m", days_old=days_old)
    return folder


def counted(assay: RunCommand, *arguments: str) -> dict[str, int]:
    document: dict[str, int] = json.loads(assay("admin", "cache", "--json", *arguments).out)
    return document


def test_replies_are_counted(assay: RunCommand, replies: Path) -> None:
    size = sum(path.stat().st_size for path in replies.glob("*/*.json"))
    assert counted(assay) == {"replies": 3, "bytes": size}


def test_clear_removes_only_the_selected_replies(assay: RunCommand, replies: Path) -> None:
    assert "2 replies removed" in assay("admin", "cache", "--clear", "--older-than", "4w").out
    assert counted(assay)["replies"] == 1
    assert counted(assay, "--clear")["removed"] == 1
    assert counted(assay) == {"replies": 0, "bytes": 0}
