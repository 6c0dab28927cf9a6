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
    """Create three cached replies of two models in the data folder."""
    folder = tmp_path / "data" / "replies"
    store(folder, 1, "small", days_old=40)
    store(folder, 2, "small")
    store(folder, 3, "large", days_old=40)
    return folder


def replies_by_model(assay: RunCommand, *arguments: str) -> dict[str, int]:
    document = json.loads(assay("admin", "cache", "--json", *arguments).out)
    return {model["model"]: model["replies"] for model in document["models"]}


def test_replies_are_listed_by_model_with_their_last_use(assay: RunCommand, replies: Path) -> None:
    ended = assay("admin", "cache", "--json")
    document = json.loads(ended.out)
    assert (ended.code, document["replies"]) == (0, 3)
    assert document["bytes"] == sum(path.stat().st_size for path in replies.glob("*/*.json"))
    small = document["models"][1]
    assert (small["model"], small["replies"], small["oldest"] < small["newest"]) == ("small", 2, True)


def test_clear_removes_only_the_selected_replies(assay: RunCommand, replies: Path) -> None:
    assay("admin", "cache", "--clear", "--model", "small", "--older-than", "30d")
    assert replies_by_model(assay) == {"large": 1, "small": 1}
    assert "1 replies removed" in assay("admin", "cache", "--clear", "--older-than", "4w").out
    assert replies_by_model(assay) == {"small": 1}
    assert assay("admin", "cache", "--clear").code == 0
    assert replies_by_model(assay) == {}
