"""Dashboard pages of step sessions: progress, scores, answered steps, owners, and states without content."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import httpx

from judges.suites.multimodal.snapshot import SamplingOptions, build_snapshot
from tests.fakes.multimodal import STEPS, final_answer, write_rows
from tests.integration.app.api.api_calls import assert_problem
from tests.integration.app.api.conftest import OpenApi
from tests.integration.app.features.suites.test_sessions import (
    GUIDE,
    SESSIONS,
    data,  # noqa: F401 - fixture
    finish,
    reply_to,
    say,
    start,
)


async def text_of(api: httpx.AsyncClient, path: str, status: int = 200) -> str:
    """Return the visible text of a page, with single spaces."""
    response = await api.get(path)
    assert response.status_code == status, response.text
    return " ".join(re.sub(r"<[^>]+>", " ", response.text).replace("&lt;", "<").replace("&gt;", ">").split())


async def rows_of(api: httpx.AsyncClient, path: str) -> list[dict[str, str]]:
    response = await api.get(path)
    assert response.headers["content-type"].startswith("text/csv"), response.text
    return list(csv.DictReader(response.text.removeprefix("\ufeff").splitlines()))


async def test_session_shows_progress_scores_and_answered_steps(open_api: OpenApi, data: Path):  # noqa: F811
    async with open_api(suite_data=(data,)) as api:
        assert "No sessions yet" in await text_of(api, "/suites/mind2web/sessions")
        assert ">Suites</a>" not in (await api.get("/jobs")).text
        assert (await api.get("/v1/suites")).json()["items"] == []
        session = await start(api, **GUIDE, run="learner 7", train_tasks=1, max_tasks=3)
        page = session["url"].removeprefix("/v1")
        assert "No step is finished yet" in await text_of(api, page)
        question = session["question"]
        wrong = await say(api, session, question, "Answer: C.\nAction: TYPE\nValue: x")
        for _ in range(3):
            question = wrong["question"]
            wrong = await say(api, session, question, reply_to(question))
        shown = await text_of(api, page)
        steps = (await api.get(f"{session['url']}/steps")).json()["items"]
        listed = await text_of(api, "/suites/mind2web/sessions")
        with_tab = (await api.get("/jobs")).text
        used = (await api.get("/v1/suites")).json()["items"]
        table, figures, sessions = [
            await rows_of(api, f"{path}format=csv")
            for path in (f"{page}?", f"{page}?table=figures&", "/suites/mind2web/sessions?")
        ]
        step_page = await text_of(api, f"{page}/steps/0")
        options = await rows_of(api, f"{page}/steps/0?format=csv")
        assert_problem(await api.get(f"{session['url']}/steps/4"), 404)
        assert "not answered yet" in await text_of(api, f"{page}/steps/4", 404)
        # The page needs no data, unlike the question of the session.
        shutil.rmtree(data / "test_task")
        assert_problem(await api.get(session["url"]), 422, "SUITE_DATA")
        assert "learner 7" in await text_of(api, page)
    assert steps[0]["prediction"] == {
        "elements": ["<button backend_node_id=2 button> item 2 </button> (rank 1, score 0.5)"],
        "op": "TYPE",
        "value": "x",
    }
    assert steps[0]["gold"]["elements"] == ["<button backend_node_id=1 button> blue click </button> (rank 0, score 1)"]
    assert [step["phase"] for step in steps] == ["train", "train", "test", "test"]
    assert "learner 7 in progress" in shown
    assert "4/8" in shown and "training 50.0 50.0 50.0 50.0 50.0 50.0 0.0 2 1" in shown
    assert "item 2 </button> (rank 1, score 0.5) TYPE x" in shown
    assert "learner 7" in listed and "in progress" in listed
    assert ">Suites</a>" in with_tab
    assert used == [{"suite": "mind2web", "runs": False, "sessions": True}]
    assert [row["step_acc"] for row in table] == ["0.0", "1.0", "1.0", "1.0"]
    assert (table[0]["predicted_operation"], table[0]["gold_operation"]) == ("TYPE x", "CLICK")
    assert [row["name"] for row in figures] == ["training", "test"]
    assert [(row["label"], row["state"], row["steps_done"]) for row in sessions] == [("learner 7", "in progress", "4")]
    assert "Expected CLICK" in step_page and "Answered TYPE x" in step_page and "Next step" in step_page
    assert "Previous step" not in step_page and "Page text shown to the model" not in step_page
    assert [row["option"] for row in options if row["picked"] == "true"] == steps[0]["prediction"]["elements"]


async def test_multimodal_steps_show_picked_and_correct_element(open_api: OpenApi, tmp_path: Path):
    rows = write_rows(tmp_path / "test_website.parquet", STEPS)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    build_snapshot(rows, folder / "snap.parquet", SamplingOptions(distractors=3), split=None, watch=lambda rows: None)
    async with open_api(suite_data=(folder,)) as api:
        session = await start(api, "/v1/suites/mm-mind2web/sessions", data="snap.parquet", max_tasks=1)
        question = session["question"]
        while question is not None:
            place = question["task_id"], question["step"]
            reply = final_answer(question["prompt"][-1]["content"], place) if question["round"] else "I see."
            question = (await say(api, session, question, reply))["question"]
        steps = (await api.get(f"{session['url']}/steps")).json()["items"]
        page = session["url"].removeprefix("/v1")
        shown = await text_of(api, page)
        one = await text_of(api, f"{page}/steps/1")
    assert "done" in shown and steps[1]["gold"]["value"] == "new york city"
    assert all(len(step["prediction"]["elements"]) == 1 for step in steps)
    assert steps[0]["prediction"]["elements"][0] in steps[0]["gold"]["elements"]
    assert "TYPE New York" in shown and "TYPE new york city" in shown
    assert "Expected TYPE new york city" in one


async def test_skipped_steps_have_no_prediction(open_api: OpenApi, data: Path):  # noqa: F811
    async with open_api(suite_data=(data,)) as api:
        session = await start(api, **GUIDE)
        await finish(api, session)
        steps = (await api.get(f"{session['url']}/steps")).json()["items"]
        page = await text_of(api, session["url"].removeprefix("/v1"))
    skipped = [step for step in steps if step["status"] == "skipped"]
    assert [(step["prediction"], step["gold"]["elements"]) for step in skipped] == [
        (None, []),
        (None, []),
        (None, ["1"]),
    ]
    assert "3 steps are skipped by a rule of the suite" in page


async def test_pages_of_sessions_belong_to_their_owner(open_api: OpenApi, data: Path):  # noqa: F811
    keys = "otter:submit:0b9ad5f2c1e84736a5d0,heron:submit:77c3e1f0492bd86a1e5c"
    mine, other = (entry.rpartition(":")[2] for entry in keys.split(","))
    order: dict[str, Any] = {"json": {**GUIDE, "run": "secret label"}, "headers": {"Authorization": f"Bearer {mine}"}}
    async with open_api(suite_data=(data,), api_keys=keys) as api:
        session = (await api.post(SESSIONS, **order)).json()
        page = session["url"].removeprefix("/v1")
        answer = {"question": "0.0", "text": "Answer: B.\nAction: CLICK"}
        await api.post(f"{session['url']}/answers", json=answer, headers=order["headers"])
        assert (await api.get(page)).headers["location"].startswith("/sign-in")
        for key, status in ((other, 404), (mine, 200)):
            await sign_in(api, key)
            listed = await text_of(api, "/suites/mind2web/sessions")
            assert ("secret label" in listed) is (key == mine)
            assert ("Session secret label mind2web" in await text_of(api, "/search?q=Secret")) is (key == mine)
            used = await api.get("/v1/suites", headers={"Authorization": f"Bearer {key}"})
            assert bool(used.json()["items"]) is (key == mine)
            for path in (page, f"{page}/steps/0", f"{page}?format=csv", f"{page}?format=csv&table=figures"):
                assert ("T1_a" in await text_of(api, path, status)) is (key == mine and "figures" not in path)
        foreign = await api.get(f"{session['url']}/steps/0", headers={"Authorization": f"Bearer {other}"})
        assert_problem(foreign, 404)


async def sign_in(api: httpx.AsyncClient, key: str) -> None:
    form = (await api.get("/sign-in")).text
    [token] = set(re.findall(r'name="form_token" value="([^"]+)"', form))
    response = await api.post("/sign-in", data={"key": key, "form_token": token})
    assert response.status_code == 303, response.text
