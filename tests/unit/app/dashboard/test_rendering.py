"""Templates of the dashboard."""

from __future__ import annotations

from app.dashboard.assets import Assets
from app.dashboard.rendering import create_environment
from app.features import FEATURES


def test_templates_use_only_existing_filters():
    environment = create_environment(Assets(), FEATURES)
    names = environment.list_templates()
    assert "result.html" in names
    for name in names:
        environment.get_template(name)
