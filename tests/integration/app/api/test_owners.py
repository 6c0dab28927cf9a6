"""Ownership of objects and scopes of API keys, across the API."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.access.keys import create_key
from app.storage.database import Database
from app.storage.records import Scope
from tests.integration.app.api.api_calls import assert_problem, submission_body
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def key_for(database: Database, owner: str, scope: Scope) -> dict[str, str]:
    key, _ = await create_key(database, owner, scope, now=datetime.now(UTC))
    return bearer(key)


async def test_read_scope_rejects_changes(open_api: OpenApi, database: Database):
    reads = await key_for(database, "heron", Scope.READ)
    async with open_api(workers=0) as api:
        assert (await api.get("/v1/jobs", headers=reads)).status_code == 200
        for path in ("/v1/jobs/job_x/cancel", "/v1/jobs/job_x/retry", "/v1/pages/page_x/recapture"):
            assert_problem(await api.post(path, headers=reads), 403, "SCOPE")
        read = assert_problem(await api.post("/v1/submissions", json=submission_body(), headers=reads), 403, "SCOPE")
        assert "'read'" in read["detail"]
        assert "'submit'" in read["detail"]
        files = {"file": ("a.zip", b"anything")}
        assert_problem(await api.post("/v1/submissions/archive", files=files, headers=reads), 403, "SCOPE")
        for path in ("/v1/submissions", "/v1/submissions/archive"):  # the key is checked before the body is read
            too_long = {"Content-Length": "99999999999"}
            assert_problem(await api.post(path, content=b"", headers=too_long), 401, "UNAUTHORIZED")


async def test_rate_limit_applies_per_owner_with_retry_after(open_api: OpenApi, database: Database):
    otter = await key_for(database, "otter", Scope.READ)
    heron = await key_for(database, "heron", Scope.READ)
    async with open_api(workers=0, rate_per_s=1.0) as api:
        answers = [await api.get("/v1/tasks", headers=otter) for _ in range(8)]
        assert answers[0].status_code == 200
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused
        for answer in refused:
            assert_problem(answer, 429, "TOO_MANY_REQUESTS")
            assert 1 <= int(answer.headers["retry-after"]) <= 2
        assert (await api.get("/v1/tasks", headers=heron)).status_code == 200


async def test_full_queue_returns_503(open_api: OpenApi):
    async with open_api(workers=0, max_queued=3) as api:
        two = [{"name": f"answer_{n}", "text": "x"} for n in (1, 2)]
        key = {"Idempotency-Key": "first"}
        first = await api.post("/v1/submissions", json=submission_body(answers=two), headers=key)
        assert first.status_code == 202
        full = await api.post("/v1/submissions", json=submission_body(answers=two))
        assert assert_problem(full, 503, "QUEUE_FULL")["detail"] == "2 jobs are queued, the limit is 3: retry later"
        assert int(full.headers["retry-after"]) > 0
        assert (await api.post("/v1/submissions", json=submission_body())).status_code == 202
        again = await api.post("/v1/submissions", json=submission_body(answers=two), headers=key)
        assert again.json() == first.json()
        assert len((await api.get("/v1/jobs")).json()["items"]) == 3
