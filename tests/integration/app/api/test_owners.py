"""Ownership of objects and scopes of API keys, across the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
import pytest

from app.access.keys import create_key
from app.storage.database import Database
from app.storage.records import Scope
from tests.integration.app.api.api_calls import assert_problem, submission_body, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

CITED = [{"name": "answer_1", "text": "It is Paris, see https://example.org/france."}]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def key_for(database: Database, owner: str, scope: Scope) -> dict[str, str]:
    key, _ = await create_key(database, owner, scope, now=datetime.now(UTC))
    return bearer(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Service with one judged answer of the owner "otter", and keys of two owners and of an operator."""

    api: httpx.AsyncClient
    otter: dict[str, str]
    heron: dict[str, str]
    heron_reads: dict[str, str]
    operator: dict[str, str]
    job: dict
    page_id: str

    def paths(self) -> list[str]:
        """Return the paths of all objects of "otter"."""
        result, page = self.job["result_id"], self.page_id
        return [
            f"/v1/submissions/{self.job['submission_id']}",
            f"/v1/jobs/{self.job['id']}",
            f"/v1/jobs/{self.job['id']}/events",
            f"/v1/results/{result}",
            f"/v1/results/{result}/origin",
            f"/v1/results/{result}/lint",
            f"/v1/results/{result}/answer",
            "/v1/agents/demo/summary",
            f"/v1/pages/{page}",
            f"/v1/pages/{page}/text",
            f"/v1/pages/{page}/screenshot",
        ]


@pytest.fixture
async def neighbours(open_api: OpenApi, database: Database) -> AsyncIterator[Neighbours]:
    otter = await key_for(database, "otter", Scope.SUBMIT)
    heron = await key_for(database, "heron", Scope.SUBMIT)
    heron_reads = await key_for(database, "heron", Scope.READ)
    operator = await key_for(database, "operator", Scope.ADMIN)
    async with open_api(pages={"https://example.org/france": "Paris is the capital of France."}) as api:
        api.headers.update(otter)
        accepted = await api.post("/v1/submissions", json=submission_body(answers=CITED))
        job = await wait_for_job(api, accepted.json()["jobs"][0]["id"])
        assert job["status"] == "succeeded", job
        [page] = (await api.get("/v1/pages")).json()["items"]
        del api.headers["authorization"]
        yield Neighbours(
            api=api,
            otter=otter,
            heron=heron,
            heron_reads=heron_reads,
            operator=operator,
            job=job,
            page_id=page["id"],
        )


async def test_owner_and_operator_can_read_objects(neighbours: Neighbours):
    for path in neighbours.paths():
        for headers in (neighbours.otter, neighbours.operator):
            assert (await neighbours.api.get(path, headers=headers)).status_code == 200, path
    for path in ("leaderboard", "agents/demo/history"):
        for headers, items in ((neighbours.otter, 1), (neighbours.operator, 1), (neighbours.heron, 0)):
            read = (await neighbours.api.get(f"/v1/{path}", headers=headers)).json()
            assert len(read["items"]) == items, path


async def test_read_scope_rejects_changes(neighbours: Neighbours):
    api, reads = neighbours.api, neighbours.heron_reads
    assert (await api.get("/v1/jobs", headers=reads)).status_code == 200
    for path in ("/v1/jobs/job_x/cancel", "/v1/jobs/job_x/retry", "/v1/pages/page_x/recapture"):
        assert_problem(await api.post(path, headers=reads), 403, "SCOPE")
    read = assert_problem(await api.post("/v1/submissions", json=submission_body(), headers=reads), 403, "SCOPE")
    assert "'read'" in read["detail"]
    assert "'submit'" in read["detail"]
    files = {"file": ("a.zip", b"anything")}
    assert_problem(await api.post("/v1/submissions/archive", files=files, headers=reads), 403, "SCOPE")
    for path in ("/v1/submissions", "/v1/submissions/archive"):  # the key is checked before the body is read
        too_long = {"content": b"", "headers": {"Content-Length": "99999999999"}}
        assert_problem(await api.post(path, **too_long), 401, "UNAUTHORIZED")


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
