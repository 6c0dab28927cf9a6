from __future__ import annotations

import pytest

from judges.llm.pricing import InvalidPrices, Price, Prices, price_of, prices_as_of, shipped_prices


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"),
    ],
)
def test_snapshots_and_prefixed_names_have_the_price_of_their_model(name: str, base: str):
    assert price_of(name) == price_of(base) is not None


@pytest.mark.parametrize("model", ["", "gpt-4o-2024"])
def test_unknown_model_has_no_price(model: str):
    assert price_of(model) is None


def test_every_shipped_price_has_a_source_and_a_date():
    for model, price in shipped_prices().items():
        assert price.source, model
        assert price.checked is not None, model
        assert price.checked <= prices_as_of(), model


def test_long_request_costs_more_for_all_tokens():
    price = price_of("gpt-6.1-terra")
    assert price is not None
    assert price.usd(input_tokens=272_000, output_tokens=0) == pytest.approx(0.272)
    assert price.usd(input_tokens=300_000, output_tokens=0) == pytest.approx(0.6)
    assert price.usd(input_tokens=300_000, output_tokens=0, cached_tokens=300_000) == pytest.approx(0.03)
    assert price.usd(input_tokens=300_000, output_tokens=1_000) == pytest.approx(0.6075)


@pytest.mark.parametrize(
    "value",
    [
        '"my-model" = { input = 1, output = 2 }',
        '{"my-model": {"input": 1, "output": 2}}',
    ],
)
def test_prices_can_be_set_inline(value: str):
    prices = Prices.read(value)
    assert prices.of("my-model") == Price(input=1, output=2)
    assert prices.of("My-Model-2026-01-01") == Price(input=1, output=2)
    assert prices.of("gpt-4o") == price_of("gpt-4o")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('"m" = { input = 1 }', 'row "m": output: field required; a row has the columns input, output'),
        ('"m" = { input = -1, output = 2 }', 'row "m": input: input should be greater than or equal to 0'),
        (
            '"m" = { input = 1, output = 2, cashed = 1 }',
            'row "m": cashed: extra inputs are not permitted; a row has the columns input, output',
        ),
        ('"m" = { input = 1, output = 2, shutdown = "soon" }', 'row "m": shutdown: input should be a valid date'),
        (
            '"m" = { input = 1, output = 2, long_context = 3 }',
            'row "m": long_context: input should be a valid dictionary',
        ),
        ("{", "not valid TOML or JSON"),
        ("/no/such/file.toml", "cannot be read (FileNotFoundError): use the path of a TOML file, or TOML such as"),
    ],
)
def test_error_for_an_invalid_price_names_its_row_and_the_fix(value: str, problem: str):
    with pytest.raises(InvalidPrices) as caught:
        Prices.read(value)
    assert problem in str(caught.value)
