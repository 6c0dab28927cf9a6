"""Bundles without page contents: hashes, URLs and short quotes remain."""

from __future__ import annotations

import hashlib
import json

from app.features.bundles.content_redaction import MAX_QUOTE_CHARS, redact_prompt, truncate_reply, truncate_values
from judges.prompting.blocks import BlockBuilder

BLOCK_BUILDER = BlockBuilder(b"a secret of the tests")
LONG = "What stands on somebody's page. " * 40


def test_page_blocks_become_hashes_and_other_blocks_remain():
    blocks = [BLOCK_BUILDER.block(label, LONG) for label in ("task", "page", "links", "answer", "claim")]
    kept = redact_prompt("\n\n".join(["Our rules.", *blocks]), own_prompt=True)
    assert kept.count(LONG) == 3
    assert kept.count(hashlib.sha256(LONG.encode()).hexdigest()) == 2
    assert kept.startswith("Our rules.")


def test_long_prompt_of_a_script_is_replaced():
    assert LONG not in redact_prompt(f"Judge this: {LONG}", own_prompt=False)
    assert redact_prompt("Is it so?", own_prompt=False) == "Is it so?"


def test_quotes_in_replies_are_truncated_and_reasoning_is_not():
    reply = json.loads(truncate_reply(json.dumps({"reasoning": LONG, "result": True, "quotes": [LONG, "short"]})))
    assert reply == {"reasoning": LONG, "result": True, "quotes": [LONG[:MAX_QUOTE_CHARS], "short"]}
    assert truncate_reply(LONG) == LONG[:MAX_QUOTE_CHARS]


def test_urls_of_any_length_remain():
    url = "https://x.example/?q=" + "a" * 500
    assert truncate_values({"sources": [url], "text": LONG, "n": 1}) == {
        "sources": [url],
        "text": LONG[:MAX_QUOTE_CHARS],
        "n": 1,
    }
