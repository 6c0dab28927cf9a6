"""Settings for tests, without a .env file and without a real model."""

from __future__ import annotations

from typing import Any

from app.settings import Settings


def settings_for_tests(**overrides: Any) -> Settings:
    make: Any = Settings
    settings: Settings = make(_env_file=None, **({"model": "lexical", "drain_s": 0.0} | overrides))
    return settings
