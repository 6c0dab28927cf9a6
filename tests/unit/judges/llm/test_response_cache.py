from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.llm.cached import CacheSize, FolderReplyCache, parse_entry, to_entry
from judges.llm.client import LLMReply, StoredReply
from rubrics.verdict import Usage

KEY = "ab" * 32


def reply(text: str = '{"x": 1}') -> LLMReply:
    return LLMReply(text=text, parsed=None, model="m", usage=Usage(calls=1))


def key(number: int) -> str:
    return f"{number:064x}"


def stored_file(folder: Path, name: str = "*") -> Path:
    """Return the only file of a stored reply with this name."""
    (path,) = folder.glob(f"*/{name}.json")
    return path


async def test_stored_reply_is_found_by_another_instance(tmp_path: Path):
    await FolderReplyCache(tmp_path / "replies").put(KEY, reply())
    assert await FolderReplyCache(tmp_path / "replies").get(KEY) == StoredReply(text='{"x": 1}', model="m")


def flip(path: Path) -> None:
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(entry | {"text": '{"x": 2}'}))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def outdate(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 0}))


@pytest.mark.parametrize("damage", [flip, truncate, outdate])
async def test_damaged_entry_is_not_found_and_can_be_replaced(tmp_path: Path, damage):
    store = FolderReplyCache(tmp_path)
    await store.put(KEY, reply())
    damage(stored_file(tmp_path))
    assert await store.get(KEY) is None
    await store.put(KEY, reply())
    assert await store.get(KEY) is not None


async def test_least_recently_used_entries_are_evicted_first(tmp_path: Path):
    store = FolderReplyCache(tmp_path, max_bytes=3_000)
    for number in range(10):
        await store.put(key(number), reply("x" * 200))
        os.utime(stored_file(tmp_path, key(number)), (1000 + number, 1000 + number))
        await store.get(key(0))
    assert await store.get(key(0)) is not None
    assert await store.get(key(9)) is not None
    assert await store.get(key(1)) is None
    assert store.size().bytes <= 3_000


async def test_size_and_clear_count_the_entries(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    assert store.size() == CacheSize(0, 0)
    for number in range(3):
        await store.put(key(number), reply())
    assert store.size().entries == 3
    assert store.clear().entries == 3
    assert store.size() == CacheSize(0, 0)
    await store.put(KEY, reply())
    assert await store.get(KEY) is not None


async def test_unwritable_folder_loses_only_the_entry(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    store = FolderReplyCache(tmp_path / "file")
    await store.put(KEY, reply())
    assert await store.get(KEY) is None


@given(text=st.text(), model=st.text(), at=st.text("0123456789abcdef", min_size=1), other=st.text("0123456789abcdef"))
def test_entry_is_valid_only_under_its_own_key(text: str, model: str, at: str, other: str):
    reply = StoredReply(text=text, model=model)
    entry = to_entry(reply, at=at)
    assert entry.isascii()
    assert parse_entry(entry, at=at) == reply
    assert (parse_entry(entry, at=other) is None) == (other != at)
