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
