"""``Allow`` header and OPTIONS for every path of the API and the dashboard."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from fastapi.routing import iter_route_contexts

from app.server.application import create_app
from tests.fakes.settings import settings_for_tests

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


async def test_allow_header_lists_exactly_the_methods_of_every_path(tmp_path: Path):
    # The application responds with 503 to routed requests because its lifespan has not run. That is enough here.
    app = create_app(settings_for_tests(data_dir=tmp_path), workers=0)
    served = {str(context.path) for context in iter_route_contexts(app.routes)}
    assert {"/", "/healthz", "/metrics", "/openapi.json", "/v1/submissions"} <= served
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as api:
        for path in sorted(re.sub(r"{[^}]*}", "x", path) for path in served):
            refused = await api.request("PROPFIND", path)
            assert (refused.status_code, refused.json()["code"]) == (405, "METHOD_NOT_ALLOWED"), path
            allowed = refused.headers["allow"].split(", ")
            options = await api.options(path)
            assert (options.status_code, options.headers["allow"].split(", ")) == (204, allowed), path
            answered = [one for one in METHODS if (await api.request(one, path)).status_code != 405]
            assert answered == allowed, path
