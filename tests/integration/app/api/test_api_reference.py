"""The API reference page: complete, and without anything from another host."""

from __future__ import annotations

import re

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.settings import settings_for_tests


@pytest.fixture
async def page() -> tuple[httpx.Response, dict]:
    app = create_app(settings_for_tests())
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.get("/docs"), app.openapi()


async def test_page_describes_every_operation_with_its_fields(page: tuple[httpx.Response, dict]):
    response, description = page
    assert response.status_code == 200
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert f'<details id="{operation["operationId"]}">' in response.text
            assert f"<code>{method.upper()} {path}</code>" in response.text
    for field in ("answers[].text", "items[].job_counts.queued", "progress.leaves_total", "Idempotency-Key"):
        assert f"<code>{field}</code>" in response.text
    assert "string or null" in response.text
    assert "Headers: <code>Location</code>" in response.text


async def test_page_loads_nothing_from_other_hosts(page: tuple[httpx.Response, dict]):
    response, _ = page
    loaded = re.findall(r'(?:src|href)="([^"]*)"', response.text)
    assert len(loaded) > 5
    assert [url for url in loaded if not url.startswith(("/", "#"))] == []
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "<style" not in response.text
