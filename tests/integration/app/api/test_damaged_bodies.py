"""Damaged stored bodies: the service returns a problem and never the damaged bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import assert_problem, running_app, submit, wait_for_job

pytestmark = pytest.mark.postgres

TEXT = "Paris is the capital of France."
URL = "https://example.org/france"


def _flip_bit(body: Path) -> None:
    data = bytearray(body.read_bytes())
    data[3] ^= 1
    body.write_bytes(data)


def _make_unreadable(body: Path) -> None:
    """Replace the body with a symlink loop, which even root cannot open."""
    body.unlink()
    body.symlink_to(body)


@asynccontextmanager
async def _service(database_url: str, judges: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Service with its bodies in ``folder`` and one judged answer."""
    app = create_app(
        settings_for_tests(data_dir=folder / "data", database_url=database_url),
        workers=1,
        runtime=scripted_runtime(judges, {URL: TEXT}, data_folder=folder),
    )
    async with running_app(app) as api:
        await wait_for_job(api, (await submit(api, answers=[{"name": "a", "text": f"See {URL}."}]))[0])
        yield api


def _stored_body(folder: Path, sha256: str) -> Path:
    return folder / "blobs" / "sha256" / sha256[:2] / sha256


async def test_damaged_body_is_never_served(database_url: str, judges: Path, tmp_path: Path):
    async with _service(database_url, judges, tmp_path) as api:
        [page] = (await api.get("/v1/pages")).json()["items"]
        for role in ("text", "screenshot"):
            address = f"/v1/pages/{page['id']}/{role}"
            whole = await api.get(address)
            assert whole.status_code == 200
            body = _stored_body(tmp_path, whole.headers["etag"].strip('"'))
            _flip_bit(body)
            for _again in range(2):
                answer = await api.get(address)
                detail = assert_problem(answer, 404, "NOT_FOUND")["detail"]
                assert role in detail
                assert "recapture" in detail
                assert "etag" not in answer.headers
            assert not body.exists()  # quarantined
        again = (await api.post(f"/v1/pages/{page['id']}/recapture")).json()
        address = f"/v1/pages/{again['id']}/text"
        whole = await api.get(address)
        assert whole.text == TEXT
        _make_unreadable(_stored_body(tmp_path, whole.headers["etag"].strip('"')))
        answer = await api.get(address)
        assert_problem(answer, 503, "UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
