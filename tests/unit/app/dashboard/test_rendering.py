"""Templates of the dashboard."""

from __future__ import annotations

import pytest

from app.dashboard.assets import Assets
from app.dashboard.rendering import create_environment
from app.server.application import TEMPLATES


@pytest.mark.slow
def test_templates_use_only_existing_filters():
    environment = create_environment(Assets(), TEMPLATES)
    names = environment.list_templates()
    assert "result.html" in names
    for name in names:
        environment.get_template(name)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("-0.168|decimal", "\N{MINUS SIGN}0.17"),
        ("-0.001|decimal", "0.00"),
        ("none|decimal", "\N{EN DASH}"),
    ],
)
def test_numbers_have_a_minus_sign(shown: str, text: str):
    environment = create_environment(Assets(), TEMPLATES)
    assert environment.from_string("{{ (" + shown.replace("|", ")|", 1) + " }}").render() == text
