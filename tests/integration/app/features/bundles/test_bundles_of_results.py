"""Bundles in the JSON, the entity tag and the page of a result."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
from jsonschema_rs import Draft202012Validator

from app.features.bundles.storage import BundleRoot, record_bundle_root
from app.storage.database import Database
from tests.integration.app.api.conftest import OpenApi
from tests.integration.app.api.test_history import judge_answer


async def test_bundles_of_a_result_are_listed_once(working_api: httpx.AsyncClient, database: Database):
    job = await judge_answer(working_api, run="monday")
    path = f"/v1/results/{job['result_id']}/bundles"
    assert (await working_api.get(path)).json() == {"items": [], "next_cursor": None}
    root = BundleRoot(root_sha256="ab" * 32, content=True, created_at=datetime(2026, 3, 4, tzinfo=UTC))
    for _ in range(2):
        async with database.begin() as connection:
            await record_bundle_root(connection, [job["result_id"], "res_forgotten"], root)
    [found] = (await working_api.get(path)).json()["items"]
    assert found == {"root_sha256": "ab" * 32, "content": True, "created_at": "2026-03-04T00:00:00Z"}
    assert (await working_api.get("/v1/results/res_unknown/bundles")).status_code == 404


async def test_new_bundles_change_result_and_etag(working_api: httpx.AsyncClient, database: Database):
    job = await judge_answer(working_api, run="monday")
    path = f"/v1/results/{job['result_id']}"
    stored = await working_api.get(path)
    assert "bundles" not in stored.json()
    tags = [stored.headers["etag"]]
    for number in range(2):
        root = BundleRoot(
            root_sha256=f"{number:064x}", content=not number, created_at=datetime(2026, 3, 4 + number, tzinfo=UTC)
        )
        async with database.begin() as connection:
            await record_bundle_root(connection, [job["result_id"]], root)
        found = await working_api.get(path, headers={"If-None-Match": tags[-1]})
        assert found.status_code == 200
        tags.append(found.headers["etag"])
    assert len(set(tags)) == 3
    assert (await working_api.get(path, headers={"If-None-Match": tags[-1]})).status_code == 304
    assert found.text.startswith(stored.text.rstrip().removesuffix("}"))
    assert found.json()["bundles"] == (await working_api.get(f"{path}/bundles")).json()["items"]
    assert (await working_api.get("/v1/results")).json()["items"] == [found.json()]
    Draft202012Validator((await working_api.get("/v1/schema/result.json")).json()["properties"]["bundles"]).validate(
        found.json()["bundles"]
    )


async def test_result_page_shows_bundles(open_api: OpenApi, database: Database):
    async with open_api(pages={}) as api:
        job = await judge_answer(api, run="monday")
        page = f"/results/{job['result_id']}"
        assert "Root hash" not in (await api.get(page)).text
        root = BundleRoot(root_sha256="ab" * 32, content=False, created_at=datetime(2026, 3, 4, tzinfo=UTC))
        async with database.begin() as connection:
            await record_bundle_root(connection, [job["result_id"]], root)
        shown = (await api.get(page)).text
    assert f'title="Root hash">{"ab" * 32}<' in shown
    assert "without pages" in shown
    assert f'href="/v1/results/{job["result_id"]}/bundles"' in shown
