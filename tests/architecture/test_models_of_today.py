"""Facts that become outdated: the default model and the price table. These tests use today's date on purpose.

If a test fails, a model or price has changed; the code is not broken. The message says what to do.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.settings import Settings
from judges.llm.models import DEFAULT_EFFORT, DEFAULT_MODEL, WARNING_DAYS, params_for
from judges.llm.pricing import price_of, prices_as_of
from judges.llm.providers import parse_model

MAX_AGE = timedelta(days=180)
TODAY = datetime.now(UTC).date()


def test_default_model_is_not_about_to_shut_down():
    name = parse_model(Settings.model_fields["model"].default)
    assert (name.provider, name.model) == ("openai", DEFAULT_MODEL)
    assert params_for(DEFAULT_MODEL) == {"reasoning_effort": DEFAULT_EFFORT}
    price = price_of(DEFAULT_MODEL)
    assert price is not None, f"{DEFAULT_MODEL} has no row in judges/llm/prices.toml: add one"
    if price.shutdown is not None and price.shutdown - TODAY < timedelta(days=WARNING_DAYS):
        pytest.fail(
            f"the default model {DEFAULT_MODEL} shuts down on {price.shutdown}: choose another one, set DEFAULT_MODEL "
            "in judges/llm/models.py, and change the default in docs/operations.md and the changelog"
        )


def test_price_table_is_recent():
    age = TODAY - prices_as_of()
    if age > MAX_AGE:
        pytest.fail(
            f"judges/llm/prices.toml was compared with the providers' lists {age.days} days ago: compare every row "
            "with its source, add new models, set `shutdown` for those with a date, and set `as_of` to that day"
        )
