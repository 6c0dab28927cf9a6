"""Estimates from earlier results, and from cited pages and claims."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.estimate import AnswerFacts, Estimate, PageSize, estimate_answer, total
from judges.llm.pricing import Prices, price_of

MODEL = "openai/gpt-4.1"


def result(
    calls: int, *, model: str = "gpt-4.1", answer: str = "other", claims: int = 0, **fields: Any
) -> dict[str, Any]:
    usage = {"calls": calls, "cached_calls": 0, "input_tokens": 1000 * calls, "output_tokens": 50 * calls}
    leaves = [
        {"id": str(number), "claim": "It is so", "sources": ["https://a.example", "https://b.example"]}
        for number in range(claims)
    ]
    tree = {"id": "root", "children": leaves}
    return {
        "status": "complete",
        "model": model,
        "answer_sha256": answer,
        "usage": usage,
        "eval_breakdown": [{"verification_tree": tree}],
        **fields,
    }


def estimate(*past: dict[str, Any], pages: tuple[PageSize | None, ...] = (), model: str = MODEL) -> Estimate:
    facts = AnswerFacts(text="It is so.", sha256="this", pages=pages, past=past)
    return estimate_answer(facts, model, Prices())


def test_range_spans_three_earlier_results_of_the_task() -> None:
    found = estimate(result(10), result(30), result(20))
    assert (found.calls, found.basis) == ((10, 30), "3 earlier results of the task")
    assert found.input_tokens == (10_000, 30_000)
    price = price_of("gpt-4.1")
    assert price is not None and found.usd is not None
    assert found.usd[0] == pytest.approx(price.usd(input_tokens=10_000, output_tokens=500))


def test_without_usable_results_claims_of_the_newest_and_page_sizes_count() -> None:
    newest = result(0, model="lexical", claims=4)
    found = estimate(newest, pages=(PageSize(8_000, 2), PageSize(4_000, 0)))
    assert found.basis == "4 claims of the newest result; 2 of 2 pages captured"
    assert found.calls[0] == 2 * 4
    assert found.calls[1] == pytest.approx(3 * 8 + 1 + 8 / 3), "each claim has two pages"
    low, high = (found.input_tokens[end] / found.calls[end] for end in (0, 1))
    assert high - low == pytest.approx((2_000 + 2 * 1_000) - 1_000), "the larger page with its images, and the smaller"


def test_total_is_the_sum_and_has_no_price_if_one_is_unknown() -> None:
    one, other = estimate(*[result(10)] * 3), estimate(*[result(20)] * 3)
    assert total([one, other]).calls == (30, 30)
    assert total([one, estimate(model="openai/my-own")]).as_json()["usd"] is None
