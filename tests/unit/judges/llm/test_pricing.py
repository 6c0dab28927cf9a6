from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from judges.llm.pricing import InvalidPrices, LongContext, Price, Prices, price_of, prices_as_of, shipped_prices


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/o4-mini", "o4-mini"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ],
)
def test_snapshots_and_prefixed_names_have_the_price_of_their_model(name: str, base: str):
    assert price_of(name) == price_of(base) is not None


@pytest.mark.parametrize("model", ["", "my-model", "gpt-4o-2024", "gpt-99"])
def test_unknown_model_has_no_price(model: str):
    assert price_of(model) is None


def test_lexical_model_is_free():
    price = price_of("lexical")
    assert price is not None
    assert price.usd(input_tokens=10**6, output_tokens=10**6) == 0


def test_cost_is_tokens_times_price():
    assert Price(input=2, output=8).usd(input_tokens=500_000, output_tokens=250_000) == 3.0


def test_cached_tokens_cost_less_if_their_price_is_known():
    assert (
        Price(input=2, output=8, cached_input=0.5).usd(input_tokens=10**6, output_tokens=0, cached_tokens=10**6) == 0.5
    )
    assert Price(input=2, output=8).usd(input_tokens=10**6, output_tokens=0, cached_tokens=10**6) == 2


@pytest.mark.parametrize("model", sorted(shipped_prices().keys() - {"lexical"}))
def test_every_shipped_price_has_cached_and_batch_prices(model: str):
    price = shipped_prices()[model]
    assert price.cached_input is not None
    assert 0 < price.cached_input < price.input
    assert price.cache_write is None or price.cache_write == pytest.approx(1.25 * price.input)
    assert price.batch == 0.5
    assert price.flex in (None, 0.5)


@pytest.mark.parametrize("model", sorted(shipped_prices()))
def test_every_shipped_price_has_a_source_and_a_date(model: str):
    price = shipped_prices()[model]
    assert price.source
    assert price.checked is not None
    assert price.checked <= prices_as_of()


def test_long_request_costs_more_for_all_tokens():
    price = price_of("gpt-6.1-terra")
    assert price is not None
    assert price.usd(input_tokens=272_000, output_tokens=0) == pytest.approx(0.272)
    assert price.usd(input_tokens=300_000, output_tokens=0) == pytest.approx(0.6)
    assert price.usd(input_tokens=300_000, output_tokens=0, cached_tokens=300_000) == pytest.approx(0.03)
    assert price.usd(input_tokens=300_000, output_tokens=1_000) == pytest.approx(0.6075)


def test_tokens_written_to_the_prompt_cache_cost_25_percent_more():
    price = price_of("gpt-6.1-terra")
    assert price is not None
    assert price.usd(input_tokens=100_000, output_tokens=0, cache_write_tokens=100_000) == pytest.approx(0.125)


def test_models_that_were_shut_down_have_a_price_but_are_not_offered():
    assert price_of("o4-mini") is not None
    assert "o4-mini" not in Prices().names(on=date(2026, 11, 22))
    assert "gpt-4o" in Prices().names(on=date(2027, 1, 13))
    assert "gpt-4o" not in Prices().names(on=date(2027, 1, 14))


@pytest.mark.parametrize(
    "value",
    [
        '"my-model" = { input = 1, output = 2 }',
        '[models]\n"my-model" = { input = 1, output = 2 }',
        '{"my-model": {"input": 1, "output": 2}}',
    ],
)
def test_prices_can_be_set_inline(value: str):
    prices = Prices.read(value)
    assert prices.of("my-model") == Price(input=1, output=2)
    assert prices.of("My-Model-2026-01-01") == Price(input=1, output=2)
    assert prices.of("gpt-4o") == price_of("gpt-4o")


def test_prices_of_a_file_override_the_shipped_ones(tmp_path: Path):
    file = tmp_path / "prices.toml"
    file.write_text(
        '[models]\n"gpt-4o" = { input = 1, output = 2, long_context = { above = 5, input = 2, output = 3 } }'
    )
    found = Prices.read(str(file)).of("gpt-4o")
    assert found == Price(input=1, output=2, long_context=LongContext(above=5, input=2, output=3))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('"m" = { input = 1 }', 'row "m": output is missing; give US dollars per million tokens'),
        ('"m" = { input = "1", output = 2 }', "row \"m\": input must be a number of at least 0, not '1'"),
        ('"m" = { input = -1, output = 2 }', 'row "m": input must be a number of at least 0, not -1'),
        ('"m" = { input = nan, output = 2 }', 'row "m": input must be a number of at least 0, not nan'),
        ('"m" = { input = 1, output = 2, cashed = 1 }', "row \"m\": unknown field 'cashed'; use input, output"),
        ('"m" = { input = 1, output = 2, shutdown = "soon" }', 'row "m": shutdown must be a date such as 2026-10-23'),
        ('"m" = { input = 1, output = 2, long_context = 3 }', 'row "m": long_context must be an object with above'),
        ('"m" = 3', 'row "m": expected an object with input and output'),
        ('{"m": [1, 2]}', 'row "m": expected an object with input and output'),
        ("{", "not valid TOML or JSON"),
        ("= 3", "not valid TOML or JSON"),
        ("/no/such/file.toml", "cannot be read (FileNotFoundError): use the path of a TOML file, or TOML such as"),
        ("{}", "no row for any model"),
    ],
)
def test_error_for_an_invalid_price_names_its_row_and_the_fix(value: str, problem: str):
    with pytest.raises(InvalidPrices) as caught:
        Prices.read(value)
    assert problem in str(caught.value)
