from __future__ import annotations

from typing import Any

import pytest

from judges.llm.client import LLMRequest
from judges.llm.encoding import KEY_VERSION
from judges.llm.remote import SHORTENED_PAGE_NOTICE, ContextWindows, page_chars_allowed, with_shortened_page
from judges.prompting.blocks import BlockBuilder

BLOCK_BUILDER = BlockBuilder(b"the secret of a test")
PAGE = "the lamp shop " * 1000


def request(page: str = PAGE, *, parts: bool = True, purpose: Any = "verify") -> LLMRequest:
    claim = BLOCK_BUILDER.block("claim", "It is so")
    text = f"{BLOCK_BUILDER.block('page', page)}\n\n{claim}"
    picture = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA"}}
    content = [picture, {"type": "text", "text": text}] if parts else text
    rules = {"role": "system", "content": "rules"}
    return LLMRequest(model="m", messages=(rules, {"role": "user", "content": content}), purpose=purpose)


def shortened(asked: LLMRequest, refusal: str) -> LLMRequest | None:
    """Return the request with a shortened page."""
    allowed = page_chars_allowed(asked, ContextWindows().record_rejected(asked, refusal))
    return None if allowed is None else with_shortened_page(asked, allowed)


def text_of(asked: LLMRequest | None) -> str:
    assert asked is not None
    content = asked.messages[-1]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


@pytest.mark.parametrize("parts", [True, False])
def test_only_the_end_of_the_page_is_removed(parts: bool):
    whole = request(parts=parts)
    less = shortened(whole, "too long")
    assert less is not None
    before, after = text_of(whole), text_of(less)
    assert len(after) < 0.6 * len(before)
    start, _, rest = after.partition(SHORTENED_PAGE_NOTICE)
    assert before.startswith(start)
    assert before.endswith(rest)
    assert rest.startswith("\n</page ")
    assert less.messages[0] == whole.messages[0]
    if parts:
        assert less.messages[-1]["content"][0] == whole.messages[-1]["content"][0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request("short"), "too long"),
        (request(purpose="extract"), "too long"),
        (request(), "limit 100 tokens, got 100000 tokens"),
    ],
)
def test_request_that_shortening_cannot_fix_is_not_repeated(asked: LLMRequest, words: str):
    assert shortened(asked, words) is None


def test_form_of_a_shortened_page_is_fixed_for_the_cache_version():
    asked = request("lamp " * 1_000, parts=False)
    whole = text_of(asked)
    block, nonce = whole.partition(">")[0], whole[6:38]
    assert text_of(with_shortened_page(asked, 12)) == (
        f"{block}>\nlamp lamp la\n[The page goes on; it was cut here, to fit.]\n</page {nonce}>"
        f"{whole.partition('</page')[2].partition('>')[2]}"
    )
    # Stored replies and call logs identify a shortened page by its length only, so its form must not change.
    assert KEY_VERSION == 2
