"""Recognition rate of orders by their wording, and its false positives on ordinary pages.

``tuned`` and ``fresh`` were read while the wordings were written. ``unseen`` was written afterwards and never used,
so it shows the rate for an attacker who does not know the wordings: most orders are not recognised. Against those,
only the rules that do not depend on wording help.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.grounding.injection import scan
from judges.grounding.quotes import find_quotes
from judges.grounding.support import ClaimGrounds
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import prepare_page
from tests.fakes.pages import page

WORDINGS = Path(__file__).parent / "wordings"
BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")


def read(name: str):
    return json.loads((WORDINGS / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize(("name", "at_least"), [("tuned", 0.9), ("fresh", 0.8), ("unseen", 0.2)])
def test_minimum_share_of_orders_is_recognised(name: str, at_least: float):
    orders = read(name)
    recognised = [order for order in orders if scan(order).has_unquoted_injection]
    assert len(recognised) >= at_least * len(orders)


def test_ordinary_pages_still_support_their_claims():
    for sample in read("ordinary"):
        shown = prepare_page(page(text=sample["text"]), BLOCK_BUILDER)
        quotes = find_quotes(shown.index.folded, shown.text, [sample["proof"]], page_id=shown.page_id)
        asked = ClaimGrounds.of(sample["claim"], task="Find out what is asked.", answer="It is so.", page=shown)
        assert [quote.text for quote in asked.usable_quotes(quotes)] == [sample["proof"].rstrip(".")], sample["about"]
