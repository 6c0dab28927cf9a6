"""YAML files of tasks over HTTP: read, edit, test on a stored answer, save."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import assert_problem, running_app, submit, wait_for_job
from tests.standin.call import Call
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

URL = "https://example.org/paris"
PAGES = {URL: "Paris is the capital of France. It lies on the Seine."}
SOURCE = """\
format: 1
version: "1"
description: Tell of Paris.  # the question
fields: {city: }
rubric:
  parallel:
    # Checked by hand in 2025.
    capital:
      claim: "{city} is the capital of France"  # the main claim
      sources: https://example.org/paris
    river: {claim: "{city} lies on the Seine", sources: "https://example.org/paris"}
"""
CAPITAL = "rubric/parallel/capital"
FILE = "/v1/tasks/paris/file"
REFUTED = "{city} is the largest city of France"
KEYS = {scope: f"{scope}-0b9ad5f2c1e84736a5d0" for scope in ("read", "submit", "operator")}

Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


def verdict(call: Call) -> bool:
    return "largest" not in (call.claim or "")


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(rule=verdict, extractions={"Values": {"city": "Paris"}}) as server:
        yield server


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    folder = tmp_path / "judges"
    folder.mkdir()
    (folder / "paris.yaml").write_text(SOURCE)
    (folder / "native.py").write_text(
        "from judges.registry import judge\n@judge(task='native', description='What?')\nasync def native(ctx): ...\n"
    )
    return folder


@pytest.fixture
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Start:
    @asynccontextmanager
    async def started(**changes: Any) -> AsyncIterator[httpx.AsyncClient]:
        settings = settings_for_tests(
            data_dir=tmp_path,
            database_url=database_url,
            judges=(judges,),
            model="openai/gpt-4.1",
            openai_base_url=model.base_url,
            **changes,
        )
        app = create_app(settings, workers=1, runtime=scripted_runtime(judges, PAGES, data_folder=tmp_path / "kept"))
        async with running_app(app) as client:
            yield client

    return started


@pytest.fixture
async def api(start: Start) -> AsyncIterator[httpx.AsyncClient]:
    async with start() as client:
        yield client


async def draft(api: httpx.AsyncClient, text: str = SOURCE, **values: str | bool) -> dict[str, Any]:
    given = {f"{CAPITAL}/{key}": value for key, value in values.items()}
    response = await api.post(f"{FILE}/edits", json={"text": text, "values": given})
    assert response.status_code == 200, response.text
    edited: dict[str, Any] = response.json()
    return edited


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def places(checked: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(each["line"], each["column"], each["field"]) for each in checked["problems"]]


async def judged(api: httpx.AsyncClient) -> dict[str, Any]:
    """Judge an answer and return its job."""
    [job_id] = await submit(api, task_id="paris", answers=[{"name": "answer_1", "text": f"Paris, [see]({URL})."}])
    job = await wait_for_job(api, job_id)
    assert job["status"] == "succeeded", job
    return job


async def result_of(api: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/v1/results/{job['result_id']}")).json()
    return found


async def test_file_has_its_tree(api: httpx.AsyncClient):
    found = (await api.get(FILE)).json()
    assert (found["file"], found["text"], found["read_only"], found["problems"]) == ("paris.yaml", SOURCE, None, [])
    assert found["head"] == {"description": "Tell of Paris.", "version": "1"}
    assert [(node["path"], node["line"]) for node in found["nodes"]] == [(CAPITAL, 8), ("rubric/parallel/river", 11)]
    assert (await api.get("/v1/tasks/paris")).json()["file"] == "paris.yaml"


async def test_edited_text_is_checked_and_not_saved(api: httpx.AsyncClient, judges: Path):
    edited = await draft(api, claim=REFUTED, weight="2")
    assert edited["diff"].splitlines()[2:] == [
        "@@ -6,6 +6,7 @@",
        "   parallel:",
        "     # Checked by hand in 2025.",
        "     capital:",
        '-      claim: "{city} is the capital of France"  # the main claim',
        '+      claim: "{city} is the largest city of France"  # the main claim',
        "+      weight: 2",
        "       sources: https://example.org/paris",
        '     river: {claim: "{city} lies on the Seine", sources: "https://example.org/paris"}',
    ]
    assert edited["problems"] == []
    assert (judges / "paris.yaml").read_text() == SOURCE


async def test_errors_have_line_column_and_field(api: httpx.AsyncClient, judges: Path):
    assert places(await draft(api, weight="heavy")) == [(10, 7, f"{CAPITAL}/weight")]
    edited = await draft(api, claim="{town} is the capital")
    assert places(edited) == [(9, 16, f"{CAPITAL}/claim")]
    assert "town" in edited["problems"][0]["message"]
    body = {"text": edited["text"], "base_sha256": hashlib.sha256(SOURCE.encode()).hexdigest()}
    problem = assert_problem(await api.put(FILE, json=body), 422, "INVALID")
    assert problem["errors"][0]["path"] == "line 9, column 16"
    problem = assert_problem(await api.put(FILE, json={**body, "text": "format: 1\n\tx"}), 422, "INVALID")
    assert problem["errors"][0]["path"].startswith("line 2, column ")
    assert (judges / "paris.yaml").read_text() == SOURCE


async def test_field_that_does_not_exist_is_refused(api: httpx.AsyncClient):
    body = {"text": SOURCE, "values": {"rubric/parallel/none/claim": "x"}}
    assert_problem(await api.post(f"{FILE}/edits", json=body), 422, "INVALID")


async def test_next_job_and_rescore_use_the_saved_version(api: httpx.AsyncClient, judges: Path):
    before = await result_of(api, await judged(api))
    assert before["final_score"] == 1.0
    (judges / "paris.yaml").chmod(0o640)
    edited = await draft(api, claim=REFUTED)
    saved = await api.put(FILE, json={"text": edited["text"], "base_sha256": (await api.get(FILE)).json()["sha256"]})
    assert saved.status_code == 200, saved.text
    text = (judges / "paris.yaml").read_text()
    assert text == edited["text"]
    assert text.count("#") == SOURCE.count("#")
    assert (judges / "paris.yaml").stat().st_mode & 0o777 == 0o640
    assert names(judges) == ["native.py", "paris.yaml"]
    after = await result_of(api, await judged(api))
    assert after["final_score"] == 0.5
    digest = hashlib.sha256(text.encode()).hexdigest()
    current = (await api.get("/v1/tasks/paris")).json()["sha256"]
    assert after["script"]["sha256"] == digest == saved.json()["sha256"] == current
    accepted = (await api.post("/v1/rescores", json={"task_id": "paris"})).json()
    for job in (await api.get(accepted["submission_url"])).json()["jobs"]:
        again = await result_of(api, await wait_for_job(api, job["id"]))
        assert (again["final_score"], again["script"]["sha256"]) == (0.5, digest)


async def test_change_on_disk_is_never_overwritten(api: httpx.AsyncClient, judges: Path):
    opened = (await api.get(FILE)).json()
    other = SOURCE.replace("Tell of", "Speak of")
    (judges / "paris.yaml").write_text(other)
    edited = await draft(api, claim=REFUTED)
    body = {"text": edited["text"], "base_sha256": opened["sha256"]}
    assert_problem(await api.put(FILE, json=body), 409, "FILE_CHANGED")
    now = (await api.get(FILE)).json()
    assert now["text"] == (judges / "paris.yaml").read_text() == other
    again = await draft(api, text=other, claim=REFUTED)
    saved = await api.put(FILE, json={"text": again["text"], "base_sha256": now["sha256"]})
    assert saved.status_code == 200
    assert "Speak of" in (judges / "paris.yaml").read_text()
    (judges / "paris.yaml").unlink()
    assert_problem(await api.put(FILE, json=body), 404)
    assert not (judges / "paris.yaml").exists()


async def test_one_of_several_simultaneous_saves_wins(api: httpx.AsyncClient, judges: Path):
    opened = (await api.get(FILE)).json()
    texts = [SOURCE.replace("Tell", f"Speak {nth} times") for nth in range(6)]
    saves = (api.put(FILE, json={"text": text, "base_sha256": opened["sha256"]}) for text in texts)
    answers = await asyncio.gather(*saves)
    assert sorted(answer.status_code for answer in answers) == [200] + 5 * [409]
    [won] = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
    assert (judges / "paris.yaml").read_text() == won
    assert names(judges) == ["native.py", "paris.yaml"]


async def test_file_that_cannot_be_written_is_reported(
    api: httpx.AsyncClient, judges: Path, monkeypatch: pytest.MonkeyPatch
):
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    opened = (await api.get(FILE)).json()
    monkeypatch.setattr("app.features.tasks.files.atomic_path", read_only)
    body = {"text": SOURCE.replace("Tell", "Speak"), "base_sha256": opened["sha256"]}
    problem = assert_problem(await api.put(FILE, json=body), 409, "READ_ONLY")
    assert "Read-only file system" in problem["detail"]
    assert (judges / "paris.yaml").read_text() == SOURCE


@pytest.mark.parametrize("scope", ["read", "submit"])
async def test_key_without_the_scope_sees_the_tree_and_changes_nothing(start: Start, judges: Path, scope: str):
    async with start(api_keys=tuple(f"team:{each}:{key}" for each, key in KEYS.items())) as api:
        headers = {"Authorization": f"Bearer {KEYS[scope]}"}
        found = (await api.get(FILE, headers=headers)).json()
        assert len(found["nodes"]) == 2
        assert scope in found["read_only"]
        body = {"text": SOURCE.replace("Tell", "Speak"), "base_sha256": found["sha256"]}
        assert_problem(await api.put(FILE, json=body, headers=headers), 403, "SCOPE")
        assert_problem(await api.post(f"{FILE}/edits", json={"text": SOURCE}, headers=headers), 403, "SCOPE")
        test = {"text": SOURCE, "job_id": "job_x"}
        assert_problem(await api.post(f"{FILE}/tests", json=test, headers=headers), 403, "SCOPE")
        assert (judges / "paris.yaml").read_text() == SOURCE
        headers = {"Authorization": f"Bearer {KEYS['operator']}"}
        assert (await api.put(FILE, json=body, headers=headers)).status_code == 200
    assert (judges / "paris.yaml").read_text() == body["text"]


async def test_unsaved_version_is_tested_on_a_stored_answer(api: httpx.AsyncClient, judges: Path, model: StandInLLM):
    job = await judged(api)
    model.calls.clear()
    edited = await draft(api, claim=REFUTED)
    accepted = await api.post(f"{FILE}/tests", json={"text": edited["text"], "job_id": job["id"]})
    assert accepted.status_code == 202, accepted.text
    await wait_for_job(api, accepted.json()["id"])
    compared = (await api.get(accepted.json()["url"])).json()["comparison"]
    assert (compared["before"]["score"]["value"], compared["after"]["score"]["value"]) == (1.0, 0.5)
    assert [(flip["leaf"], flip["before"], flip["after"]) for flip in compared["flips"]] == [
        ("capital", "passed", "failed")
    ]
    assert {call.claim for call in model.calls} == {REFUTED.format(city="Paris")}  # only the changed claim is asked
    assert (judges / "paris.yaml").read_text() == SOURCE
    # The test does not count as a result of the agent.
    history = (await api.get("/v1/agents/demo/history")).json()["items"]
    assert [one["result_id"] for one in history] == [job["result_id"]]
    assert (await api.get("/v1/agents/demo/summary")).json()["avg_score"] == 1.0


async def test_scores_are_those_of_the_newest_results(api: httpx.AsyncClient):
    old = await judged(api)
    edited = await draft(api, claim=REFUTED)
    sha256 = (await api.get(FILE)).json()["sha256"]
    assert (await api.put(FILE, json={"text": edited["text"], "base_sha256": sha256})).status_code == 200
    new = await judged(api)
    answers = [{"name": "answer_2", "text": f"Paris, [see]({URL})."}]
    [other] = await submit(api, agent="heron", task_id="paris", answers=answers)
    other_result = (await wait_for_job(api, other))["result_id"]
    items = (await api.get("/v1/task-scores")).json()["items"]
    assert [(one["agent"], one["result_id"]) for one in items] == [("demo", new["result_id"]), ("heron", other_result)]
    for one in items:
        assert (one["task_id"], one["run"], one["answers"], one["incomplete"]) == ("paris", None, 1, 0)
        assert one["score"] == {"value": 0.5, "low": 0.5, "high": 0.5}
        assert one["success"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert (await api.get("/v1/task-scores", params={"task_id": "native"})).json()["items"] == []
    page = (await api.get("/v1/tasks/paris/answers", params={"limit": 1})).json()
    assert [one["result_id"] for one in page["items"]] == [other_result]
    page = (await api.get("/v1/tasks/paris/answers", params={"cursor": page["next_cursor"]})).json()
    assert [(one["result_id"], one["job_id"]) for one in page["items"]] == [(new["result_id"], new["id"])]
    assert new["result_id"] != old["result_id"]


async def test_result_without_a_score_is_listed_and_counts_in_no_mean(api: httpx.AsyncClient, judges: Path):
    text = SOURCE.replace("    capital:\n", "    capital:\n      applies_if: not given(city)\n")
    (judges / "paris.yaml").write_text(text.replace("river: {", "river: {applies_if: not given(city), "))
    job = await judged(api)
    result = (await api.get(f"/v1/results/{job['result_id']}")).json()
    assert result["score"] == {"value": None, "low": None, "high": None, "reason": "nothing_applies"}
    assert result["status"] == "complete"
    assert (await api.get("/v1/task-scores")).json()["items"] == []
    [listed] = (await api.get("/v1/agents/demo/history")).json()["items"]
    [answer] = (await api.get("/v1/tasks/paris/answers")).json()["items"]
    [queued] = (await api.get("/v1/jobs")).json()["items"]
    assert (listed["score"], answer["score"], queued["score"]) == (None, None, None)
    summary = (await api.get("/v1/agents/demo/summary")).json()
    assert (summary["avg_score"], summary["nothing_applies"], summary["bounds"]["score"]) == (None, 1, None)
    [row] = (await api.get("/v1/leaderboard")).json()["items"]
    assert (row["avg_score"], row["statistics"]) == (None, None)
    for page in (
        f"/results/{job['result_id']}",
        "/",
        "/agents/demo",
        "/agents/demo/statistics",
        "/tasks/paris",
        "/jobs",
    ):
        assert (await api.get(page)).status_code == 200, page


async def test_test_needs_a_valid_text_and_an_answer_to_the_task(api: httpx.AsyncClient):
    body = {"text": SOURCE, "job_id": "job_unknown"}
    assert_problem(await api.post(f"{FILE}/tests", json=body), 404)
    job = await judged(api)
    assert_problem(await api.post(f"{FILE}/tests", json={"text": "format: 2", "job_id": job["id"]}), 422, "INVALID")


async def test_other_judges_have_no_file_to_edit(api: httpx.AsyncClient):
    for task in ("native", "karrow_visit", "nothing"):
        assert_problem(await api.get(f"/v1/tasks/{task}/file"), 404)


async def test_broken_file_can_be_read_and_repaired(api: httpx.AsyncClient, judges: Path):
    broken = SOURCE.replace("{city} is the capital", "{town} is the capital")
    (judges / "paris.yaml").write_text(broken)
    assert (await api.get("/v1/tasks/paris")).json()["status"] == "broken"
    found = (await api.get(FILE)).json()
    assert [each["field"] for each in found["problems"]] == [f"{CAPITAL}/claim"]
    edited = await draft(api, text=broken, claim="{city} is the capital")
    saved = await api.put(FILE, json={"text": edited["text"], "base_sha256": found["sha256"]})
    assert saved.status_code == 200
    assert (await api.get("/v1/tasks/paris")).json()["status"] == "ready"
    (judges / "paris.yaml").write_bytes(b"a: [\n")
    found = (await api.get(FILE)).json()
    assert (found["nodes"], found["problems"][0]["line"]) == ([], 2)


async def test_task_with_two_files_cannot_be_saved(api: httpx.AsyncClient, judges: Path):
    opened = (await api.get(FILE)).json()
    (judges / "paris.py").write_text("")
    assert "paris.py" in (await api.get(FILE)).json()["read_only"]
    body = {"text": SOURCE, "base_sha256": opened["sha256"]}
    assert_problem(await api.put(FILE, json=body), 409, "READ_ONLY")


async def test_link_is_kept_and_its_target_replaced(api: httpx.AsyncClient, judges: Path, tmp_path: Path):
    target = tmp_path / "paris-of-the-team.yaml"
    (judges / "paris.yaml").rename(target)
    (judges / "paris.yaml").symlink_to(target)
    opened = (await api.get(FILE)).json()
    text = SOURCE.replace("Tell", "Speak")
    assert (await api.put(FILE, json={"text": text, "base_sha256": opened["sha256"]})).status_code == 200
    assert (judges / "paris.yaml").is_symlink()
    assert target.read_text() == text


async def edit_form(api: httpx.AsyncClient, opened: dict[str, Any], **fields: str) -> httpx.Response:
    """Send the form of the editor for the version that was opened."""
    page = (await api.get("/tasks/paris/edit")).text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    form = {"form_token": token, "base": json.dumps(opened["text"]), "base_sha256": opened["sha256"]}
    return await api.post("/tasks/paris/edit", data=form | fields)


async def test_changes_of_a_node_that_is_gone_are_offered_as_text(api: httpx.AsyncClient, judges: Path):
    opened = (await api.get(FILE)).json()
    (judges / "paris.yaml").write_text(SOURCE.replace("    capital:", "    main_town:"))
    page = (await edit_form(api, opened, action="rebase", **{f"f:{CAPITAL}/claim": REFUTED})).text
    assert '<textarea name="text"' in page
    assert f"claim: &#34;{REFUTED}&#34;  # the main claim" in page  # the own text, to be reviewed against the new file
    assert "-    main_town:" in page
    page = (await edit_form(api, opened, action="rebase", **{"f:rubric/parallel/river/weight": "3"})).text
    assert '<textarea name="text"' not in page  # this node still exists
    assert "weight: 3" in page
    assert "main_town" in (judges / "paris.yaml").read_text()


async def test_nothing_is_saved_that_was_not_reviewed(api: httpx.AsyncClient, judges: Path):
    opened = (await api.get(FILE)).json()
    change = {f"f:{CAPITAL}/claim": REFUTED}
    answer = await edit_form(api, opened, action="save", **change)
    assert (answer.status_code, (judges / "paris.yaml").read_text()) == (200, SOURCE)
    reviewed = answer.text.partition('name="reviewed" value="')[2].partition('"')[0]
    other = {f"f:{CAPITAL}/claim": "{city} is a city"}
    answer = await edit_form(api, opened, action="save", reviewed=reviewed, **other)
    assert (answer.status_code, (judges / "paris.yaml").read_text()) == (200, SOURCE)
    answer = await edit_form(api, opened, action="save", reviewed=reviewed, **change)
    assert answer.headers["location"] == "/tasks/paris?saved=true"
    assert REFUTED in (judges / "paris.yaml").read_text()


async def test_result_page_says_that_the_judge_has_changed(api: httpx.AsyncClient, judges: Path):
    job = await judged(api)
    said = "the judge has changed since"
    assert said not in (await api.get(f"/results/{job['result_id']}")).text
    (judges / "paris.yaml").write_text(SOURCE + "# Looked at again.\n")
    assert said in (await api.get(f"/results/{job['result_id']}")).text
