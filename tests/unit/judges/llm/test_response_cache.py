from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import ShorterPage, UnusableKind, UnusableReply
from judges.llm.cached import CacheSize, FolderReplyCache, StoredReply, parse_entry, to_entry
from judges.llm.client import LLMReply
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


async def test_unknown_key_is_not_found(tmp_path: Path):
    assert await FolderReplyCache(tmp_path / "missing").get(KEY) is None


def flip(path: Path) -> None:
    entry = json.loads(path.read_text())
    path.write_text(json.dumps(entry | {"text": '{"x": 2}'}))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def outdate(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 0}))


def replace_by_list(path: Path) -> None:
    path.write_text("[]")


@pytest.mark.parametrize("damage", [flip, truncate, empty, outdate, replace_by_list])
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
    assert (await store.size()).bytes <= 3_000


async def test_size_and_clear_count_the_entries(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    assert await store.size() == CacheSize(0, 0)
    for number in range(3):
        await store.put(key(number), reply())
    assert (await store.size()).entries == 3
    assert (await store.clear()).entries == 3
    assert await store.size() == CacheSize(0, 0)
    await store.put(KEY, reply())
    assert await store.get(KEY) is not None


async def test_entries_are_listed_by_model(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    for number, model in enumerate(["b", "a", "b"]):
        await store.put(key(number), replace(reply(), model=model))
        os.utime(stored_file(tmp_path, key(number)), (1000 + number, 1000 + number))
    await store.put(KEY, reply())
    stored_file(tmp_path, KEY).write_text("{")
    found = {each.model: (each.entries, each.oldest, each.newest) for each in await store.by_model()}
    assert list(found) == ["a", "b", None]
    assert (found["a"], found["b"], found[None][0]) == ((1, 1001, 1001), (2, 1000, 1002), 1)
    assert sum(each.bytes for each in await store.by_model()) == (await store.size()).bytes


async def test_clear_removes_only_the_selected_entries(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    for number, model in enumerate(["b", "a", "b"]):
        await store.put(key(number), replace(reply(), model=model))
        os.utime(stored_file(tmp_path, key(number)), (1000 + number, 1000 + number))
    assert (await store.clear(model="b", used_before=1002)).entries == 1
    assert [await store.get(key(number)) is None for number in range(3)] == [True, False, False]
    assert (await store.clear(model="none of them")).entries == 0


async def test_unwritable_folder_loses_only_the_entry(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    store = FolderReplyCache(tmp_path / "file")
    await store.put(KEY, reply())
    assert await store.get(KEY) is None


async def test_reply_is_stored_although_none_can_be_evicted(tmp_path: Path):
    (tmp_path / "00" / "folder.json").mkdir(parents=True)
    os.utime(tmp_path / "00" / "folder.json", (1000, 1000))
    store = FolderReplyCache(tmp_path, max_bytes=1)
    await store.put(KEY, reply())
    assert await store.get(KEY) is not None


async def test_reply_is_found_although_its_time_of_use_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def denied(path: Path) -> None:
        raise PermissionError(path)

    store = FolderReplyCache(tmp_path)
    await store.put(KEY, reply())
    monkeypatch.setattr(os, "utime", denied)
    assert await store.get(KEY) is not None


async def test_key_whose_file_cannot_be_accessed_is_not_found(tmp_path: Path):
    store, key_too_long = FolderReplyCache(tmp_path), "ab" * 200
    await store.put(key_too_long, reply())
    assert await store.get(key_too_long) is None


async def test_no_partial_file_is_left(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    (tmp_path / KEY[:2] / f"{KEY}.json").mkdir(parents=True)
    await store.put(KEY, reply())
    assert [path.name for path in (tmp_path / KEY[:2]).iterdir()] == [f"{KEY}.json"]


async def test_any_text_round_trips(tmp_path: Path):
    store, text = FolderReplyCache(tmp_path), "\u20ac \U0001f600 \x00 \ud800"
    await store.put(KEY, reply(text))
    found = await store.get(KEY)
    assert found is not None and found.text == text


CUT = ShorterPage(refusal="openai: 400 too long \u20ac", page_chars=4_321)


async def test_shortened_page_is_stored_with_the_reply(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    unusable = UnusableReply(kind=UnusableKind.EMPTY, text="", detail="", model="m", usage=Usage())
    await store.put(KEY, replace(reply(), shorter_page=replace(CUT, unusable=(unusable,))))
    found = await FolderReplyCache(tmp_path).get(KEY)
    assert found == StoredReply(text='{"x": 1}', model="m", shorter_page=CUT)


@pytest.mark.parametrize("change", [{"shorter_page": None}, {"shorter_page": {"refusal": "no", "page_chars": 1}}])
async def test_changed_shortened_page_invalidates_the_entry(tmp_path: Path, change: dict[str, object]):
    store = FolderReplyCache(tmp_path)
    await store.put(KEY, replace(reply(), shorter_page=CUT))
    file = stored_file(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert await store.get(KEY) is None


async def test_entry_without_a_shortened_page_has_the_original_format(tmp_path: Path):
    store = FolderReplyCache(tmp_path)
    await store.put(KEY, reply())
    entry = json.loads(stored_file(tmp_path).read_text())
    assert entry == {
        "version": 1,
        "sha256": hashlib.sha256(b'm\0{"x": 1}').hexdigest(),
        "model": "m",
        "text": '{"x": 1}',
    }


@given(text=st.text(), model=st.text(), at=st.text("0123456789abcdef", min_size=1), other=st.text("0123456789abcdef"))
def test_entry_is_valid_only_under_its_own_key(text: str, model: str, at: str, other: str):
    reply = StoredReply(text=text, model=model)
    entry = to_entry(reply, at=at)
    assert entry.isascii()
    assert parse_entry(entry, at=at) == reply
    assert (parse_entry(entry, at=other) is None) == (other != at)


def test_entry_of_a_reply_to_a_shortened_page_says_so():
    shorter = ShorterPage(refusal="too long", page_chars=5_000)
    entry = to_entry(replace(reply(), shorter_page=shorter), at=KEY)
    stored = parse_entry(entry, at=KEY)
    assert stored is not None
    assert stored.shorter_page == shorter
