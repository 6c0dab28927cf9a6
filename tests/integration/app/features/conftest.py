"""The web application over ASGI, as for the tests of the core's API."""

from tests.integration.app.api.conftest import api, judges, open_api, working_api

__all__ = ["api", "judges", "open_api", "working_api"]
