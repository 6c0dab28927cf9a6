"""Cited URLs of answers: order by needs work and number of leaves, and page changes by people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.fakes.judged import FAILED, NOT_JUDGED, JudgedByText, leaf, page_entry, rubric_of
from tests.integration.app.api.api_calls import assert_problem, submit, wait_for_job
from tests.integration.app.api.conftest import OpenApi

pytestmark = pytest.mark.postgres

FINE, GONE, LOST = "https://fine.example/", "https://gone.example/page", "https://lost.example/"
RIGHT = "https://gone.example/right"
TEXT = "The tower of Vellmar is 41 metres high, was built in 1612, and stands to this day."
WEB = {FINE: TEXT, RIGHT: TEXT.replace("41", "42")}
Json = dict[str, Any]


@pytest.fixture
async def api(open_api: OpenApi) -> AsyncIterator[httpx.AsyncClient]:
    """Three cited pages: one leaf cites a usable page, one a lost page, and three a missing page."""
    judging = JudgedByText()
    async with open_api(evaluate=judging, pages=WEB) as client:
        pages = []
        for url in (FINE, GONE, LOST):
            added = await make_change(client, "add", url, task_id="capital")
            pages.append(page_entry(url, page_id=added["page_id"], outcome="ok" if url == FINE else "http_error"))

        def rubric():
            cited = [leaf(f"g{nth}", NOT_JUDGED, claim="x", sources=[GONE], votes=(None,)) for nth in range(3)]
            lost = leaf("l", FAILED, claim="y", sources=[LOST, "http://www.lost.example"])
            return rubric_of(*cited, lost, leaf("f", claim="z", sources=[FINE]), leaf("code"), task_id="capital")

        judging.register("said", rubric, pages=pages)
        await wait_for_job(client, (await submit(client, answers=[{"name": "a", "text": "said"}]))[0])
        yield client


async def make_change(api: httpx.AsyncClient, action: str, url: str, **more: Any) -> Json:
    response = await api.post("/v1/pages/changes", json={"action": action, "url": url, **more})
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def undo_change(api: httpx.AsyncClient, change: Json) -> Json:
    response = await api.post(f"/v1/pages/changes/{change['id']}/undo")
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def list_urls(api: httpx.AsyncClient, **params: Any) -> list[Json]:
    response = await api.get("/v1/pages/urls", params=params)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


async def get_url(api: httpx.AsyncClient, url: str) -> Json:
    [found] = await list_urls(api, url=url)
    return found


async def test_urls_are_sorted_by_needs_work_and_number_of_leaves(api: httpx.AsyncClient):
    found = await list_urls(api, task_id="capital")
    assert [one["url"] for one in found] == [GONE, LOST, FINE]
    assert [(one["leaves"], one["open_leaves"], one["problem"], one["needs_work"]) for one in found] == [
        (3, 3, True, True),
        (1, 0, True, False),  # its claim failed because the page does not exist
        (1, 0, False, False),
    ]
    assert found[0]["outcome"] == "http_error"
    assert [one["url"] for one in await list_urls(api, needs_work="true")] == [GONE]
    assert await list_urls(api, task_id="another") == []
    [task] = (await api.get("/v1/pages/tasks")).json()["items"]
    assert task == {
        "task_id": "capital", "urls": 3, "problems": 2, "flagged": 0, "reviewed": 0, "needs_work": 1,
        "leaves_waiting": 3,
    }  # fmt: skip
    first = (await api.get("/v1/pages/urls", params={"limit": 2})).json()
    rest = (await api.get("/v1/pages/urls", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert ([item["url"] for item in first["items"] + rest["items"]], rest["next_cursor"]) == ([GONE, LOST, FINE], None)
    dependents = (await api.get("/v1/pages/dependents", params={"url": [GONE, LOST]})).json()
    assert [dependents[name] for name in ("answers", "leaves", "open_leaves", "calls")] == [1, 4, 3, 8]
    assert dependents["usd"] == pytest.approx(4 * 0.0031)
    page = found[2]["page_id"]
    path = f"/v1/pages/{page}/closest"
    passage = (await api.get(path, params={"claim": "The tower of Vellmar is 45 metres high"})).json()["passage"]
    assert passage["text"] == TEXT[passage["start"] : passage["end"]] and "41 metres" in passage["text"]
    assert (await api.get(path, params={"claim": "Ida Norrstad"})).json() == {"passage": None}


async def test_url_correction_creates_alias_and_can_be_undone(api: httpx.AsyncClient):
    before = await get_url(api, GONE)
    edit = await make_change(api, "edit", GONE, to=RIGHT, reason="a word is wrong", by="Ada")
    assert (edit["to_url"], edit["reason"], edit["by"], edit["key_owner"]) == (RIGHT, "a word is wrong", "Ada", "local")
    after = await get_url(api, GONE)
    assert (after["problem"], after["to_url"], after["page_id"]) == (False, RIGHT, edit["page_id"])
    page = (await api.get(f"/v1/pages/{after['page_id']}")).json()
    assert (page["url"], page["alias_of"] is not None) == (GONE, True)
    assert page["provenance"]["corrected_by"] == "Ada" and page["provenance"]["correction_reason"] == "a word is wrong"
    assert (await api.get(f"/v1/pages/{after['page_id']}/text")).text == WEB[RIGHT]
    assert (await api.get(f"/v1/pages/{before['page_id']}")).json()["problem"]  # the earlier page still exists

    repeated = (await api.post(f"/v1/pages/{after['page_id']}/recapture")).json()
    assert (repeated["url"], repeated["problem"]) == (GONE, False)  # the correction target was captured again
    undo = await undo_change(api, edit)
    assert undo["undoes"] == edit["id"]
    restored = await get_url(api, GONE)
    assert (restored["problem"], restored["to_url"], restored["page_id"]) == (True, None, before["page_id"])
    first, second = [await make_change(api, "edit", GONE, to=to) for to in (RIGHT, FINE)]
    await undo_change(api, first)
    assert (await get_url(api, GONE))["page_id"] == second["page_id"]


async def test_flags_and_reviews_set_needs_work(api: httpx.AsyncClient):
    await make_change(api, "flag", FINE, reason="half of it is missing", by="Ada")
    flagged = await get_url(api, FINE)
    assert (flagged["flagged"], flagged["flagged_by"], flagged["needs_work"], flagged["problem"]) == (
        True,
        "Ada",
        True,
        False,
    )
    assert (await list_urls(api))[0]["url"] == GONE
    await make_change(api, "unflag", FINE)
    assert not (await get_url(api, FINE))["needs_work"]
    review = await make_change(api, "review", GONE)
    seen = await get_url(api, GONE)
    assert (seen["reviewed"], seen["problem"], seen["needs_work"]) == (True, True, False)
    await api.post(f"/v1/pages/{review['page_id']}/recapture")
    assert (await get_url(api, GONE))["needs_work"]  # the new attempt is not reviewed
    flag = await make_change(api, "flag", FINE)
    path = f"/v1/pages/{flag['page_id']}/content"
    uploaded = await api.put(path, content=TEXT.encode(), headers={"Content-Type": "text/plain"})
    assert uploaded.status_code == 201
    assert not (await get_url(api, FINE))["flagged"]


async def test_undo_is_possible_once_and_only_for_undoable_changes(api: httpx.AsyncClient):
    flag = await make_change(api, "flag", FINE)
    undo = await undo_change(api, flag)
    assert_problem(await api.post(f"/v1/pages/changes/{flag['id']}/undo"), 409, "UNDONE_ALREADY")
    assert_problem(await api.post(f"/v1/pages/changes/{undo['id']}/undo"), 409, "NOT_UNDOABLE")
    assert_problem(await api.post("/v1/pages/changes/chg_nothing/undo"), 404, "NOT_FOUND")
    [flagged_change] = [
        item for item in (await api.get("/v1/pages/changes")).json()["items"] if item["id"] == flag["id"]
    ]
    assert flagged_change["undone_by"] == undo["id"]


async def test_invalid_change_is_rejected_with_its_field(api: httpx.AsyncClient):
    for body, status, code, path in (
        ({"action": "edit", "url": GONE}, 422, "INVALID", "to"),
        ({"action": "edit", "url": GONE, "to": "file:///etc/passwd"}, 422, "INVALID", "to"),
        ({"action": "edit", "url": GONE, "to": f"{GONE}/"}, 422, "INVALID", "to"),
        ({"action": "add", "url": GONE}, 422, "INVALID", "task_id"),
        ({"action": "burn", "url": GONE}, 422, "INVALID", "action"),
        ({"action": "edit", "url": GONE, "to": "https://gone.example/no"}, 409, "NO_EVIDENCE", "to"),
        ({"action": "flag", "url": "https://no.example/"}, 404, "NOT_FOUND", None),
        ({"action": "add", "url": GONE, "task_id": "capital"}, 409, "LISTED_ALREADY", None),
    ):
        problem = assert_problem(await api.post("/v1/pages/changes", json=body), status, code)
        assert path is None or path in [error["path"] for error in problem["errors"]]
    assert (await get_url(api, GONE))["to_url"] is None
