"""Cost of model tokens."""

from __future__ import annotations

from judges.llm.pricing import price_of

__all__ = ["calculate_api_cost"]


def calculate_api_cost(input_tokens: int, output_tokens: int, model_name: str) -> float:
    """Return the cost in US dollars.

    Raises:
        ValueError: the model's price is unknown.
    """
    price = price_of(model_name)
    if price is None:
        raise ValueError(f"the price of {model_name!r} is unknown")
    return price.usd(input_tokens=input_tokens, output_tokens=output_tokens)
