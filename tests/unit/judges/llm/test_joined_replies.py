"""Replies near and far: what other machines were told is found, and comes near."""

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


class Far:
    """The far place, and how often it is asked."""

    def __init__(self) -> None:
        self.kept: dict[str, StoredReply] = {}
        self.asked: list[str] = []

    async def get(self, key: str) -> StoredReply | None:
        self.asked.append(key)
        return self.kept.get(key)

    def offer(self, key: str, reply: LLMReply) -> None:
        self.kept[key] = StoredReply(text=reply.text, model=reply.model)


async def test_what_another_machine_was_told_is_fetched_once(tmp_path: Path):
    far = Far()
    await TwoLevelReplyCache(FolderReplyCache(tmp_path / "one"), far).put(KEY, REPLY)
    other = TwoLevelReplyCache(FolderReplyCache(tmp_path / "two"), far)
    assert [await other.get(KEY), await other.get(KEY)] == [STORED, STORED]
    assert far.asked == [KEY]


async def test_what_is_at_hand_is_not_asked_for_elsewhere(tmp_path: Path):
    far = Far()
    joined = TwoLevelReplyCache(FolderReplyCache(tmp_path), far)
    await joined.put(KEY, REPLY)
    assert await joined.get(KEY) == STORED
    assert far.asked == []


async def test_what_nobody_was_told_is_not_there(tmp_path: Path):
    assert await TwoLevelReplyCache(FolderReplyCache(tmp_path), Far()).get(KEY) is None


@given(text=st.text(), model=st.text(), at=st.text("0123456789abcdef", min_size=1), other=st.text("0123456789abcdef"))
def test_an_entry_is_one_at_its_own_place_alone(text: str, model: str, at: str, other: str):
    reply = StoredReply(text=text, model=model)
    entry = to_entry(reply, at=at)
    assert entry.isascii()
    assert parse_entry(entry, at=at) == reply
    assert (parse_entry(entry, at=other) is None) == (other != at)


async def test_a_reply_to_a_shorter_page_is_one_on_every_machine(tmp_path: Path):
    shorter = ShorterPage(refusal="too long", page_chars=5_000)
    entry = to_entry(replace(REPLY, shorter_page=shorter), at=KEY)
    found = parse_entry(entry, at=KEY)
    assert found == replace(STORED, shorter_page=shorter)
    far = Far()
    far.kept[KEY] = found
    joined = TwoLevelReplyCache(FolderReplyCache(tmp_path), far)
    assert [await joined.get(KEY), await joined.get(KEY)] == [found, found]
    assert far.asked == [KEY]
