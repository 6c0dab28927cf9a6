"""The URLs that answers cite: what needs work and matters most first, and what people do with them, kept for good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import DBAPIError

from app.storage.database import connect_database
from app.storage.tables import page_changes
from tests.fakes.judged import FAILED, NOT_JUDGED, JudgedByText, leaf, page_entry, rubric_of
from tests.integration.app.api.asking import ended, problem, submit
from tests.integration.app.api.conftest import Open

pytestmark = pytest.mark.postgres

FINE, GONE, LOST = "https://fine.example/", "https://gone.example/page", "https://lost.example/"
RIGHT = "https://gone.example/right"
SAID = "The tower of Vellmar is 41 metres high, was built in 1612, and stands to this day."
WEB = {FINE: SAID, RIGHT: SAID.replace("41", "42")}
Json = dict[str, Any]


@pytest.fixture
async def api(open_api: Open) -> AsyncIterator[httpx.AsyncClient]:
    """Three cited pages: one leaf hangs on a sound one, one on a lost one, three on one that is gone."""
    judging = JudgedByText()
    async with open_api(evaluate=judging, pages=WEB) as client:
        pages = []
        for url in (FINE, GONE, LOST):
            added = await changed(client, "add", url, task_id="capital")
            pages.append(page_entry(url, page_id=added["page_id"], outcome="ok" if url == FINE else "http_error"))

        def rubric():
            cited = [leaf(f"g{nth}", NOT_JUDGED, claim="x", sources=[GONE], votes=(None,)) for nth in range(3)]
            lost = leaf("l", FAILED, claim="y", sources=[LOST, "http://www.lost.example"])
            return rubric_of(*cited, lost, leaf("f", claim="z", sources=[FINE]), leaf("code"), task_id="capital")

        judging.tell("said", rubric, pages=pages)
        await ended(client, (await submit(client, answers=[{"name": "a", "text": "said"}]))[0])
        yield client


async def changed(api: httpx.AsyncClient, action: str, url: str, **more: Any) -> Json:
    response = await api.post("/v1/pages/changes", json={"action": action, "url": url, **more})
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def undone(api: httpx.AsyncClient, change: Json) -> Json:
    response = await api.post(f"/v1/pages/changes/{change['id']}/undo")
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def listed(api: httpx.AsyncClient, **params: Any) -> list[Json]:
    response = await api.get("/v1/pages/urls", params=params)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


async def state(api: httpx.AsyncClient, url: str) -> Json:
    [found] = await listed(api, url=url)
    return found


async def test_what_needs_work_comes_first_and_of_that_what_most_leaves_hang_on(api: httpx.AsyncClient):
    found = await listed(api, task_id="capital")
    assert [one["url"] for one in found] == [GONE, LOST, FINE]
    assert [(one["leaves"], one["open_leaves"], one["problem"], one["needs_work"]) for one in found] == [
        (3, 3, True, True),
        (1, 0, True, True),
        (1, 0, False, False),
    ]
    assert found[0]["outcome"] == "http_error"
    assert [one["url"] for one in await listed(api, needs_work="true")] == [GONE, LOST]
    assert await listed(api, task_id="another") == []
    [task] = (await api.get("/v1/pages/tasks")).json()["items"]
    assert task == {
        "task_id": "capital", "urls": 3, "problems": 2, "flagged": 0, "reviewed": 0, "needs_work": 2,
        "leaves_waiting": 4,
    }  # fmt: skip


async def test_the_list_goes_on_where_it_was_left(api: httpx.AsyncClient):
    seen, cursor = [], None
    while True:
        part = (await api.get("/v1/pages/urls", params={"limit": 1, **({"cursor": cursor} if cursor else {})})).json()
        seen += [one["url"] for one in part["items"]]
        cursor = part["next_cursor"]
        if cursor is None:
            break
    assert seen == [GONE, LOST, FINE]


async def test_what_hangs_on_pages_is_counted_with_what_it_cost(api: httpx.AsyncClient):
    found = (await api.get("/v1/pages/dependents", params={"url": [GONE, LOST]})).json()
    assert (found["answers"], found["leaves"], found["open_leaves"], found["calls"]) == (1, 4, 3, 8)
    assert found["usd"] == pytest.approx(4 * 0.0031)
    [one] = found["items"]
    assert (one["task_id"], one["answer_name"], one["leaves"]) == ("capital", "a.md", 4)


async def test_only_the_newest_result_of_an_answer_counts(api: httpx.AsyncClient):
    [job] = (await api.get("/v1/jobs")).json()["items"]
    assert (await api.post(f"/v1/jobs/{job['id']}/retry")).status_code == 202
    await ended(api, job["id"])
    assert (await state(api, GONE))["leaves"] == 3
    assert len((await api.get("/v1/results")).json()["items"]) == 2


async def test_a_correction_lets_the_meant_page_answer_and_an_undo_takes_it_back(api: httpx.AsyncClient):
    before = await state(api, GONE)
    edit = await changed(api, "edit", GONE, to=RIGHT, why="a word is wrong", by="Ada")
    assert (edit["to_url"], edit["why"], edit["by"], edit["key_owner"]) == (RIGHT, "a word is wrong", "Ada", "local")
    after = await state(api, GONE)
    assert (after["problem"], after["to_url"], after["page_id"]) == (False, RIGHT, edit["page_id"])
    page = (await api.get(f"/v1/pages/{after['page_id']}")).json()
    assert (page["url"], page["alias_of"] is not None) == (GONE, True)
    assert page["provenance"]["corrected_by"] == "Ada" and page["provenance"]["corrected_why"] == "a word is wrong"
    assert (await api.get(f"/v1/pages/{after['page_id']}/text")).text == WEB[RIGHT]
    assert (await api.get(f"/v1/pages/{before['page_id']}")).json()["problem"]  # what there was is there

    again = (await api.post(f"/v1/pages/{after['page_id']}/recapture")).json()
    assert (again["url"], again["problem"]) == (GONE, False)  # the meant page was looked at again
    undo = await undone(api, edit)
    assert undo["undoes"] == edit["id"]
    restored = await state(api, GONE)
    assert (restored["problem"], restored["to_url"], restored["page_id"]) == (True, None, before["page_id"])


async def test_two_corrections_are_undone_in_any_order(api: httpx.AsyncClient):
    first = await changed(api, "edit", GONE, to=RIGHT)
    second = await changed(api, "edit", GONE, to=FINE)
    assert (await state(api, GONE))["to_url"] == FINE
    await undone(api, first)
    assert (await state(api, GONE))["page_id"] == second["page_id"]
    await undone(api, second)
    assert (await state(api, GONE))["problem"]


async def test_judging_goes_by_the_corrected_page(open_api: Open):
    answer = [{"name": "a", "text": "Paris, see [France](https://example.org/frnce)."}]
    source = "https://example.org/france"
    async with open_api(pages={source: "Paris is the capital of France, and has been for long."}) as api:
        job = await ended(api, (await submit(api, answers=answer))[0])
        cited = "https://example.org/frnce"
        assert (await state(api, cited))["problem"]
        edit = await changed(api, "edit", cited, to=source)
        assert (await api.post(f"/v1/jobs/{job['id']}/retry")).status_code == 202
        result = (await api.get(f"/v1/results/{(await ended(api, job['id']))['result_id']}")).json()
        [page] = [one for one in result["pages"] if one["url"] == cited]
        assert (page["outcome"], page["page_id"]) == ("ok", edit["page_id"])


async def test_an_address_without_evidence_stands_for_nothing(api: httpx.AsyncClient):
    refused = await api.post("/v1/pages/changes", json={"action": "edit", "url": GONE, "to": "https://gone.example/no"})
    assert problem(refused, 409, "NO_EVIDENCE")["errors"][0]["path"] == "to"
    assert (await state(api, GONE))["to_url"] is None


async def test_what_was_deleted_answers_no_more_until_it_is_undone(api: httpx.AsyncClient):
    before = await state(api, FINE)
    gone = await changed(api, "delete", FINE, why="the wrong page")
    assert FINE not in [one["url"] for one in await listed(api, task_id="capital")]
    assert [one["url"] for one in await listed(api, deleted="true")] == [FINE]
    assert (await api.get(f"/v1/pages/{before['page_id']}")).status_code == 200
    await undone(api, gone)
    assert (await state(api, FINE))["page_id"] == before["page_id"]
    again = await changed(api, "delete", FINE)
    added = await changed(api, "add", FINE, task_id="capital")  # captured anew
    assert added["page_id"] != before["page_id"]
    assert (await state(api, FINE))["page_id"] == added["page_id"]
    assert again["id"] in [one["id"] for one in (await api.get("/v1/pages/changes")).json()["items"]]


async def test_flags_and_reviews_say_what_needs_work(api: httpx.AsyncClient):
    await changed(api, "flag", FINE, why="half of it is missing", by="Ada")
    flagged = await state(api, FINE)
    assert (flagged["flagged"], flagged["flagged_by"], flagged["needs_work"], flagged["problem"]) == (
        True,
        "Ada",
        True,
        False,
    )
    assert (await listed(api))[0]["url"] == GONE
    await changed(api, "unflag", FINE)
    assert not (await state(api, FINE))["needs_work"]
    review = await changed(api, "review", LOST)
    seen = await state(api, LOST)
    assert (seen["reviewed"], seen["problem"], seen["needs_work"]) == (True, True, False)
    await api.post(f"/v1/pages/{review['page_id']}/recapture")
    assert (await state(api, LOST))["needs_work"]  # nobody has looked at the new attempt


async def test_a_flag_is_answered_by_handing_the_page_in(api: httpx.AsyncClient):
    flag = await changed(api, "flag", FINE)
    handed = await api.put(
        f"/v1/pages/{flag['page_id']}/content", content=SAID.encode(), headers={"Content-Type": "text/plain"}
    )
    assert handed.status_code == 201
    assert not (await state(api, FINE))["flagged"]
    history = (await api.get("/v1/pages/changes", params={"url": FINE})).json()["items"]
    assert [one["action"] for one in history] == ["unflag", "flag", "add"]
    assert history[0]["why"] == "the page was uploaded"


async def test_an_undo_happens_once_and_only_to_what_there_is(api: httpx.AsyncClient):
    flag = await changed(api, "flag", FINE)
    undo = await undone(api, flag)
    problem(await api.post(f"/v1/pages/changes/{flag['id']}/undo"), 409, "UNDONE_ALREADY")
    problem(await api.post(f"/v1/pages/changes/{undo['id']}/undo"), 409, "NOT_UNDOABLE")
    problem(await api.post("/v1/pages/changes/chg_nothing/undo"), 404, "NOT_FOUND")
    [kept] = [one for one in (await api.get("/v1/pages/changes")).json()["items"] if one["id"] == flag["id"]]
    assert kept["undone_by"] == undo["id"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"action": "edit", "url": GONE}, "to"),
        ({"action": "flag", "url": GONE, "to": RIGHT}, "to"),
        ({"action": "edit", "url": GONE, "to": "file:///etc/passwd"}, "to"),
        ({"action": "edit", "url": GONE, "to": f"{GONE}/"}, "to"),
        ({"action": "add", "url": GONE}, "task_id"),
        ({"action": "add", "url": "javascript:alert(1)", "task_id": "capital"}, "url"),
        ({"action": "flag", "url": GONE, "task_id": "capital"}, "task_id"),
        ({"action": "burn", "url": GONE}, "action"),
        ({"action": "flag", "url": GONE, "more": 1}, "more"),
    ],
)
async def test_a_change_that_breaks_a_rule_is_refused_by_name(api: httpx.AsyncClient, body: Json, path: str):
    assert path in [
        one["path"] for one in problem(await api.post("/v1/pages/changes", json=body), 422, "INVALID")["errors"]
    ]


async def test_a_url_on_no_list_cannot_be_changed_and_one_on_it_not_be_added(api: httpx.AsyncClient):
    problem(
        await api.post("/v1/pages/changes", json={"action": "flag", "url": "https://no.example/"}), 404, "NOT_FOUND"
    )
    body = {"action": "add", "url": GONE, "task_id": "capital"}
    problem(await api.post("/v1/pages/changes", json=body), 409, "LISTED_ALREADY")


async def test_changes_need_an_operators_key(open_api: Open):
    async with open_api(workers=0, api_keys=["k" * 40]) as api:
        assert (await api.post("/v1/pages/changes", json={"action": "flag", "url": GONE})).status_code == 401
        assert (await api.get("/v1/pages/urls")).status_code == 401


async def test_a_change_is_never_changed(api: httpx.AsyncClient, database_url: str):
    async with connect_database(database_url) as database:
        with pytest.raises(DBAPIError, match="never changed"):
            async with database.begin() as connection:
                await connection.execute(page_changes.update().values(reason="something else"))
