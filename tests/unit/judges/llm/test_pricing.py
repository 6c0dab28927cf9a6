from __future__ import annotations

from datetime import date

import pytest

from judges.llm.pricing import Price, _prices, price_of, prices_as_of


@pytest.mark.parametrize(
    ("model", "input", "output"), [("gpt-4.1", 2, 8), ("o4-mini", 1.10, 4.40), ("gpt-4o", 2.50, 10)]
)
def test_prices_of_the_contract(model: str, input: float, output: float):
    price = price_of(model)
    assert price is not None
    assert (price.input, price.output) == (input, output)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/o4-mini", "o4-mini"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ],
)
def test_snapshots_and_provider_names_have_the_price_of_their_model(name: str, base: str):
    assert price_of(name) == price_of(base) is not None


@pytest.mark.parametrize("model", ["", "my-model", "gpt-4o-2024", "gpt-99"])
def test_an_unknown_model_has_no_price(model: str):
    assert price_of(model) is None


def test_the_lexical_judge_is_free():
    price = price_of("lexical")
    assert price is not None
    assert price.usd(input_tokens=10**6, output_tokens=10**6) == 0


def test_a_cost_is_tokens_times_price():
    assert Price(input=2, output=8).usd(input_tokens=500_000, output_tokens=250_000) == 3.0


def test_tokens_from_the_prefix_cache_cost_less_where_that_is_known():
    assert (
        Price(input=2, output=8, cached_input=0.5).usd(input_tokens=10**6, output_tokens=0, cached_tokens=10**6) == 0.5
    )
    assert Price(input=2, output=8).usd(input_tokens=10**6, output_tokens=0, cached_tokens=10**6) == 2


def test_a_batch_costs_half_and_is_unknown_where_there_is_none():
    price = price_of("gpt-4.1")
    assert price is not None
    tokens = {"input_tokens": 10**6, "output_tokens": 10**6}
    assert price.batch_usd(**tokens) == price.usd(**tokens) / 2
    assert Price(input=2, output=8).batch_usd(**tokens) is None


@pytest.mark.parametrize("model", sorted(_prices()))
def test_every_price_is_whole_and_what_is_cached_or_in_a_batch_costs_less(model: str):
    price = _prices()[model]
    assert (price.batch_input is None) == (price.batch_output is None)
    for cheaper, dearer in ((price.cached_input, price.input), (price.batch_input, price.input)):
        assert cheaper is None or 0 < cheaper < dearer


def test_the_table_says_of_when_it_is():
    assert prices_as_of() >= date(2026, 11, 1)
