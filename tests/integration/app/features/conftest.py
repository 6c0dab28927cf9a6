"""Fixtures of the API tests: the web application over ASGI."""

from tests.integration.app.api.conftest import api, judges, open_api, working_api

__all__ = ["api", "judges", "open_api", "working_api"]
