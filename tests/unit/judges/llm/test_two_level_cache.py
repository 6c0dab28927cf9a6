"""Two-level reply cache: replies of other machines are found in the shared level and stored locally."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from judges.errors import ShorterPage
from judges.llm.client import LLMReply
from judges.llm.response_cache import FolderReplyCache, StoredReply, TwoLevelReplyCache, parse_entry, to_entry
from rubrics.verdict import Usage

KEY = "ab" * 32
REPLY = LLMReply(text="{}", parsed=None, model="m", usage=Usage(calls=1))
STORED = StoredReply(text="{}", model="m")


class SharedLevel:
    """Shared level that counts its lookups."""

    def __init__(self) -> None:
        self.kept: dict[str, StoredReply] = {}
        self.asked: list[str] = []

    async def get(self, key: str) -> StoredReply | None:
        self.asked.append(key)
        return self.kept.get(key)

    def offer(self, key: str, reply: LLMReply) -> None:
        self.kept[key] = StoredReply(text=reply.text, model=reply.model)


async def test_reply_of_another_machine_is_fetched_once(tmp_path: Path):
    shared = SharedLevel()
    await TwoLevelReplyCache(FolderReplyCache(tmp_path / "one"), shared).put(KEY, REPLY)
    other = TwoLevelReplyCache(FolderReplyCache(tmp_path / "two"), shared)
    assert [await other.get(KEY), await other.get(KEY)] == [STORED, STORED]
    assert shared.asked == [KEY]


async def test_local_reply_is_not_looked_up_in_the_shared_level(tmp_path: Path):
    shared = SharedLevel()
    joined = TwoLevelReplyCache(FolderReplyCache(tmp_path), shared)
    await joined.put(KEY, REPLY)
    assert await joined.get(KEY) == STORED
    assert shared.asked == []


async def test_unknown_key_is_not_found(tmp_path: Path):
    assert await TwoLevelReplyCache(FolderReplyCache(tmp_path), SharedLevel()).get(KEY) is None


@given(text=st.text(), model=st.text(), at=st.text("0123456789abcdef", min_size=1), other=st.text("0123456789abcdef"))
def test_entry_is_valid_only_under_its_own_key(text: str, model: str, at: str, other: str):
    reply = StoredReply(text=text, model=model)
    entry = to_entry(reply, at=at)
    assert entry.isascii()
    assert parse_entry(entry, at=at) == reply
    assert (parse_entry(entry, at=other) is None) == (other != at)


async def test_reply_to_a_shortened_page_is_marked_on_every_machine(tmp_path: Path):
    shorter = ShorterPage(refusal="too long", page_chars=5_000)
    entry = to_entry(replace(REPLY, shorter_page=shorter), at=KEY)
    found = parse_entry(entry, at=KEY)
    assert found == replace(STORED, shorter_page=shorter)
    shared = SharedLevel()
    shared.kept[KEY] = found
    joined = TwoLevelReplyCache(FolderReplyCache(tmp_path), shared)
    assert [await joined.get(KEY), await joined.get(KEY)] == [found, found]
    assert shared.asked == [KEY]
